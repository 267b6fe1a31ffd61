SWIFT ?= swift
PREFIX ?= /usr/local

.PHONY: demo test build lint install prepare test-tsan test-crash bench

demo: prepare # Shows the main job in a minute: downloads with progress, JSON, a failure, and a kill -9 survived.
	@$(SWIFT) build && "$$($(SWIFT) build --show-bin-path)/demo"
test: prepare # Runs every test, in three parts, so that those that race threads do not slow those that keep time.
	@$(SWIFT) build --build-tests && for part in DeferredKit 'Job|DataSources|Deferctl|Systemd' EndToEnd; do $(SWIFT) test --skip-build --filter "^($$part)" || exit 1; done
build: prepare # Builds the release, which needs no Swift toolchain to run.
	@$(SWIFT) build -c release --static-swift-stdlib --product deferd && $(SWIFT) build -c release --static-swift-stdlib --product deferctl
lint: prepare # Checks the form of the code, and that it builds without a warning of ours.
	@$(SWIFT) format lint --strict --recursive --parallel Package.swift Sources Tests && DEFERD_STRICT=1 $(SWIFT) build --build-tests
install: build # Installs programs, units and documentation below DESTDIR and PREFIX.
	@.ci/install "$(PREFIX)" "$(DESTDIR)"
test-tsan: prepare # Runs DeferredKit's tests under the thread sanitizer.
	@$(SWIFT) test --sanitize=thread --scratch-path .build/tsan --filter DeferredKitTests
test-crash: prepare # Kills the daemon 200 times while clients submit, then lets file operations fail: lost = 0, problems = 0.
	@$(SWIFT) build && bin="$$($(SWIFT) build --show-bin-path)" && "$$bin/crash" $(ROUNDS) && "$$bin/crash" faults $(ROUNDS)
bench: build # Measures deferd beside beanstalkd, aria2 and curl, and prints one table; ROW=name measures one row.
	@.ci/peers && $(SWIFT) build -c release --package-path Tests/Benchmarks --product peerbench && "$$($(SWIFT) build -c release --package-path Tests/Benchmarks --show-bin-path)/peerbench" --deferd "$$($(SWIFT) build -c release --show-bin-path)/deferd" $(ROW)
prepare:
	@.ci/prepare
