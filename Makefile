export SWIFT ?= swift
PREFIX ?= /usr/local

.PHONY: help demo demo-machines build install deb lint test test-machines test-outside test-schedules test-tsan test-asan test-races test-yields test-defects test-crash test-deb fuzz simulate simulate-known simulate-ci simulate-mutants soak floods bench bench-kit prepare

help: # Lists the targets by purpose.
	@.ci/help

## To use it
demo: prepare # Shows the main job in a minute: downloads with progress, JSON, a failure, and a kill -9 survived.
	@.ci/demo
demo-machines: prepare # Shows three daemons that share JOBS=10000 jobs in a PostgreSQL server of their own, and one of them killed. Installs PostgreSQL if it is missing.
	@.ci/machines demo
build: prepare # Builds the release, which needs no Swift toolchain to run.
	@.ci/release deferd deferctl
install: # Installs what make build built, with units and documentation, below DESTDIR and PREFIX.
	@.ci/install "$(PREFIX)" "$(DESTDIR)"
deb: prepare # Builds a Debian package in .build/deb, and has lintian look at it.
	@.ci/deb .build/deb

## To check a change (.ci/run is what CI runs)
lint: prepare # Checks the form of the code, and that it builds without a warning of ours.
	@.ci/lint
test: prepare # Runs every test.
	@.ci/test
simulate-ci: # Runs the seeds that failed once, then as many of the commit's own as 60 s of CPU time allow.
	@.ci/simulate ci
test-machines: prepare # Runs the tests with PostgreSQL, which it installs if it is missing. make test runs them only where it is installed.
	@.ci/machines test

## To try parts for longer
test-outside: # Runs DeferredKit's tests, and one that spells out every signature, in a package that has nothing but the product, and a program that sees only what DataSources and DeferredKit make public. FILTER=regex chooses tests.
	@.ci/kit outside
test-races: # Races every pair of operations on Deferreds, 100,000 rounds each, in release.
	@.ci/kit races
test-yields: # Runs DeferredKit's races in a build that yields at its locks; SEED=n gives other interleavings.
	@.ci/kit yields
test-defects: # Puts one defect after the other into DeferredKit; the tests have to find each.
	@.ci/kit defects
test-tsan: # Runs DeferredKit's tests under the thread sanitizer.
	@.ci/kit tsan
test-asan: prepare # Runs them under the address sanitizer, then the tests of what goes past Swift's checks of memory.
	@.ci/kit asan
test-schedules: prepare # Compares schedules in 32 zones with a look at each minute around each change of the clocks in 20 years.
	@DEFERD_SCHEDULES=changes "$(SWIFT)" test --filter '^JobModelTests\.CalendarZoneTests'
test-crash: prepare # Kills the daemon ROUNDS=200 times while clients submit, then lets file operations fail: lost = 0, problems = 0.
	@.ci/crash
test-deb: deb # Installs the package in a fresh Debian 12 under the real systemd, runs a download, upgrades, removes and purges it. As root.
	@Tests/SystemdTests/package.sh .build/deb/*.deb .build/debian-12
fuzz: prepare # Gives libFuzzer each of the targets in Tests/Fuzz for SECONDS=60, or TARGET=name alone, with what is committed to begin with. What it finds is printed with the command that repeats it.
	@Tests/Fuzz/run.sh $(or $(SECONDS),60) $(TARGET)
simulate: # Runs the core for SEEDS=100 seeds (or SEED=n) of HOURS=24 simulated hours each, with crashes, faults and hostile users. JOBS=n ends a seed after so many jobs, TRACE=1 prints every event.
	@.ci/simulate run
simulate-known: # Runs the seeds that failed once.
	@.ci/simulate known
simulate-mutants: # Puts each of the defects in Tests/Simulation/Mutants into a copy of the core, and fails where the simulator does not find one. MUTANT=name tries one.
	@Tests/Simulation/mutants.sh $(MUTANT)

## To measure
soak: prepare # Lets three users and hostile servers at the daemon for MINUTES=10: memory, descriptors, threads, disk and latency at the end as at the beginning.
	@.ci/soak $(MINUTES)
floods: prepare # Measures, as root, how long another user's calls take under each kind of flood beside how long without, for SECONDS=4 a row, NAME="cancel storm" of one kind only.
	@.ci/soak floods $(or $(SECONDS),4) $(if $(NAME),'$(NAME)')
bench: prepare # Measures deferd beside beanstalkd, aria2, curl and xargs, and prints one table; ROW=name measures one row.
	@.ci/bench peers
bench-kit: # Compares DeferredKit with NIO's futures and Swift's tasks; the table in the article on performance is its output. ROUNDS=n.
	@.ci/bench kit

## For other targets
prepare: # Installs the Debian packages that a build needs and are missing.
	@.ci/prepare
