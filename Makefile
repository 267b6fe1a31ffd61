SWIFT ?= swift
PREFIX ?= /usr/local
RACES = ^DeferredKitTests\.(MendedRace|PairRace|RandomProgram|Concurrency|Chaos|Cancellation|CancellationState|Delivery)Tests
# Test targets that run by themselves; all others run together.
APART = DeferredKit|DataSources|EndToEnd
DEFECTS = STEP_BACK CHECK_THEN_ACT EARLY_LOOK ORDER INTEREST

.PHONY: demo test build lint install deb prepare test-deb test-outside test-schedules test-tsan test-asan test-races test-yields test-defects test-crash fuzz soak floods bench bench-kit bench-libraries simulate simulate-known simulate-ci simulate-mutants

demo: prepare # Shows the main job in a minute: downloads with progress, JSON, a failure, and a kill -9 survived.
	@for product in deferd deferctl demo; do $(SWIFT) build --product $$product || exit 1; done && "$$($(SWIFT) build --show-bin-path)/demo"
test: prepare # Runs every test, in parts, so that those that race threads or try thousands of seeds do not slow those that keep time.
	@$(SWIFT) build --build-tests && $(SWIFT) test --skip-build --skip '^($(APART))Tests\.' && for part in $(subst |, ,$(APART)); do $(SWIFT) test --skip-build --filter "^$${part}Tests\." || exit 1; done && $(MAKE) --no-print-directory test-outside FILTER='^(OutsideTests|.*(HLDeferred|OAPromise|BNRDeferred|PINFuture|Twisted)Tests)'
build: prepare # Builds the release, which needs no Swift toolchain to run.
	@$(SWIFT) build -c release --static-swift-stdlib --product deferd && $(SWIFT) build -c release --static-swift-stdlib --product deferctl
lint: prepare # Checks the form of the code, and that it builds without a warning of ours.
	@$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests && DEFERD_STRICT=1 $(SWIFT) build --build-tests
install: build # Installs programs, units and documentation below DESTDIR and PREFIX.
	@.ci/install "$(PREFIX)" "$(DESTDIR)"
deb: prepare # Builds a Debian package in .build/deb, and has lintian look at it.
	@.ci/deb .build/deb
test-deb: deb # Installs the package in a fresh Debian 12 under the real systemd, runs a download, upgrades, removes and purges it. As root.
	@Tests/SystemdTests/package.sh .build/deb/*.deb .build/debian-12
test-outside: # Runs DeferredKit's tests, and one that spells out every signature, in a package that has nothing but the product, and a program that sees only what DataSources and DeferredKit make public. (SwiftPM sees new files there only without its plan.)
	@rm -f .build/outside/*.yaml && $(SWIFT) test --package-path Tests/Outside --scratch-path .build/outside --filter '$(or $(FILTER),.)'
	@$(SWIFT) build --product outside && "$$($(SWIFT) build --show-bin-path)/outside" >.build/outside.log || { cat .build/outside.log; exit 1; }
test-schedules: prepare # Compares the times of schedules in 32 zones with those that a look at each minute around every change of the clocks in 20 years gives.
	@DEFERD_SCHEDULES=changes $(SWIFT) test --filter '^JobModelTests\.CalendarZoneTests'
test-tsan: # Runs DeferredKit's tests under the thread sanitizer, in that same package, as it builds nothing else.
	@rm -f .build/tsan/*.yaml && DEFERRED_FEW_ROUNDS=1 $(SWIFT) test --package-path Tests/Outside --scratch-path .build/tsan --sanitize=thread
test-asan: prepare # The same under the address sanitizer, which keeps little of what was freed, as some tests measure memory, and then the tests of what goes past Swift's checks of memory: the store, the engine, lines and connections. (XCTest, which runs no test here, leaks.)
	@rm -f .build/asan/*.yaml && ASAN_OPTIONS=quarantine_size_mb=1:thread_local_quarantine_size_kb=64 DEFERRED_FEW_ROUNDS=1 $(SWIFT) test --package-path Tests/Outside --scratch-path .build/asan --sanitize=address --disable-xctest
	@ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64 $(SWIFT) test --scratch-path .build/asan-whole --sanitize=address --disable-xctest --filter '^(JobStore|JobEngine|JobServer|JobProtocol|JobClient|DeferctlCommands|Fuzz)Tests\.' --skip '_allocate|RunMemoryTests'
test-races: # Races every pair of operations on Deferreds, 100,000 rounds each, in release.
	@rm -f .build/races/*.yaml && $(SWIFT) test -c release --package-path Tests/Outside --scratch-path .build/races --filter '^DeferredKitTests\.(MendedRace|PairRace)Tests'
test-yields: # Runs DeferredKit's races in a build that yields at its locks; SEED=n gives other interleavings.
	@rm -f .build/yields/*.yaml && DEFERRED_YIELDS=1 DEFERRED_FEW_ROUNDS=1 DEFERRED_SEED=$(or $(SEED),1) $(SWIFT) test --package-path Tests/Outside --scratch-path .build/yields --filter '$(RACES)'
test-defects: # Puts one defect after the other into DeferredKit; the tests have to find each, a rare one with one of four seeds. (One that loses callbacks lets tests wait for ever.)
	@for defect in $(DEFECTS); do rm -f .build/yields/*.yaml; found=; for seed in 1 2 3 4; do if DEFERRED_DEFECT=$$defect DEFERRED_YIELDS=1 DEFERRED_FEW_ROUNDS=1 DEFERRED_SEED=$$seed timeout 300 $(SWIFT) test --package-path Tests/Outside --scratch-path .build/yields --filter '$(RACES)' >.build/defect.log 2>&1; then continue; elif grep -q 'Test run started' .build/defect.log; then found=$$seed; break; else cat .build/defect.log; exit 1; fi; done; if [ -z "$$found" ]; then echo "$$defect: not found"; exit 1; fi; echo "$$defect: found with seed $$found"; done
test-crash: prepare # Kills the daemon 200 times while clients submit, then lets file operations fail: lost = 0, problems = 0.
	@$(SWIFT) build && bin="$$($(SWIFT) build --show-bin-path)" && "$$bin/crash" $(ROUNDS) && "$$bin/crash" faults $(ROUNDS)
fuzz: prepare # Gives libFuzzer each of the targets in Tests/Fuzz for SECONDS=60, or TARGET=name alone, with what is committed to begin with. What it finds is printed with the command that repeats it.
	@SWIFT="$(SWIFT)" Tests/Fuzz/run.sh $(or $(SECONDS),60) $(TARGET)
soak: prepare # Lets three users and hostile servers at the daemon for MINUTES=10: memory, descriptors, threads, disk and latency at the end as at the beginning.
	@for product in deferd soak; do $(SWIFT) build -c release --product $$product || exit 1; done && "$$($(SWIFT) build -c release --show-bin-path)/soak" $(MINUTES)
floods: prepare # Measures, as root, how long another user's calls take under each kind of flood beside how long without, for SECONDS=4 a row, NAME="cancel storm" of one kind only.
	@for product in deferd soak; do $(SWIFT) build -c release --product $$product || exit 1; done && "$$($(SWIFT) build -c release --show-bin-path)/soak" floods $(or $(SECONDS),4) $(if $(NAME),'$(NAME)')
SIMULATE = SWIFT="$(SWIFT)" Tests/Simulation/package.sh .build/simulate && $(SWIFT) build -c release --package-path .build/simulate --product simulate && .build/simulate/.build/release/simulate
simulate: # Runs the core for SEEDS=100 seeds (or SEED=n) of HOURS=24 simulated hours each, with crashes, faults and hostile users. JOBS=n ends a seed after so many jobs, TRACE=1 prints every event.
	@$(SIMULATE) $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100)) --hours $(or $(HOURS),$(if $(JOBS),1000000,24)) $(if $(JOBS),--jobs $(JOBS)) $(if $(TRACE),--trace)
simulate-known: # Runs the seeds that failed once.
	@$(SIMULATE) --seeds 0 Tests/Simulation/seeds.txt
simulate-ci: # Runs the seeds that failed once, then as many of the commit's own as 60 s of CPU time allow.
	@$(SIMULATE) --from "$$((0x$$(git rev-parse HEAD | cut -c1-8)))" --seeds 100000 --seconds 60 --hours 8 Tests/Simulation/seeds.txt
simulate-mutants: # Puts each of the defects in Tests/Simulation/Mutants into a copy of the core, and fails where the simulator does not find one.
	@SWIFT="$(SWIFT)" Tests/Simulation/mutants.sh $(MUTANT)
bench: build # Measures deferd beside beanstalkd, redis, aria2, curl, wget and task-spooler, and prints one table; ROW=name measures one row.
	@.ci/peers && $(SWIFT) build -c release --package-path Tests/Benchmarks --scratch-path .build/bench --product peerbench && .build/bench/release/peerbench --deferd "$$($(SWIFT) build -c release --show-bin-path)/deferd" $(ROW)
bench-kit: # Compares DeferredKit with NIO's futures and Swift's tasks; the table in the article on performance is its output.
	@$(SWIFT) build -c release --package-path Tests/Benchmarks --scratch-path .build/bench --product Benchmarks && .build/bench/release/Benchmarks $(ROUNDS)
bench-libraries: # Measures what is ours beside the library that does the same, or the plainer way; ROW=name measures one row.
	@$(SWIFT) build -c release --package-path Tests/Benchmarks/Libraries --scratch-path .build/bench-libraries --product librarybench && .build/bench-libraries/release/librarybench $(ROW)
prepare:
	@.ci/prepare
