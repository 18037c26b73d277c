# The commands of this tree. "make" alone lists them.

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14

.PHONY: demo
demo: ## run an ordinary web server on Loam and fetch a page with curl (STAY=1 keeps it running for a browser)
	@examples/demo.sh

.PHONY: test
test: ## all checks that a change must pass (as root on Debian, it installs the packages that it needs)
	@go run ./internal/ci

.PHONY: bench
bench: ## measure Loam and comparable systems on this machine
	@cd test/bench && go run . -out results && go run . -guests -out results/guests

.PHONY: pgo
pgo: ## record the profile with which Loam's packages are compiled for guests, as root, in three minutes; writes unikernel/guest.pgo
	@go run ./test/pgo

.PHONY: daemons
daemons: ## run servers of Debian under load in a virtual machine, as root; the first run installs 1.2 GB
	@go test ./test/daemons -count=1 -timeout=60m -v -daemons

.PHONY: suites
suites: ## test suites of CPython, Go, stress-ng, busybox, perl and glibc in ring 3 and on Linux, as root, for hours; writes docs/suites.md
	@go run ./test/suites

.PHONY: isolation
isolation: ## fuzz the system calls of Linux programs for an hour, and run hostile programs (LOAM_ISOLATION=10m for another time)
	@LOAM_ISOLATION=$${LOAM_ISOLATION:-1h} go test ./unikernel -count=1 -timeout=4h -v -run=LinuxIsolation

.PHONY: genbench
genbench: ## compare the packet engine with trafgen, DPDK, hping3 and loops in C, for a few minutes; writes docs/gen
	@go test ./test/genbench -count=1 -timeout=40m -v -full -update

.PHONY: probebench
probebench: ## compare the prober with zmap and masscan on 8.4 million addresses, for twelve minutes; writes docs/probe
	@go test ./test/probebench -count=1 -timeout=60m -v -full -update

.PHONY: dpdk
dpdk: ## test the packet engine's method for DPDK, which other builds omit: needs Debian's libdpdk-dev, and gcc
	@go test -tags dpdk ./gen/method -count=1 -run DPDK

.PHONY: std
std: ## Go's own tests in full on Loam and on Linux; writes docs/std.md
	@go run ./test/std

.PHONY: modules
modules: ## the test suites of well-known modules on Loam and on Linux; writes docs/modules.md
	@go run ./test/std -modules

.PHONY: std-vm
std-vm: ## Go's own tests in a virtual machine, for half an hour; writes docs/std-vm.md
	@go run ./test/std -platform vm

.PHONY: releases
releases: ## run programs on Loam with every supported patch release of Go; missing releases are downloaded (about 70 MB each)
	@LOAM_TEST_RELEASES=all go test ./unikernel -count=1 -timeout=90m -v -run=TestReleases

.PHONY: servers
servers: ## run well-known servers on Loam for a minute each, under load, and on Linux; writes docs/servers.md
	@go test ./test/servers -count=1 -timeout=40m -v -all -seconds=60 -update

.PHONY: crashes
crashes: ## recover ext4 file systems from over 100,000 states that a power failure may leave, for some minutes (LOAM_CRASH_STATES=N for about N)
	@LOAM_CRASH_STATES=$${LOAM_CRASH_STATES:-110000} go test ./fs/ext4 -count=1 -timeout=180m -v -run=TestOrders

.PHONY: kills
kills: ## kill virtual machines KILLS times (default 20) while they run SQLite, redis and PostgreSQL, as root; the first run installs 1.2 GB
	@LOAM_POWER_CUTS=$${KILLS:-20} go test ./unikernel -count=1 -timeout=180m -v -run=SQLitePowerCut
	@go test ./test/daemons -count=1 -timeout=600m -v -run=TestKills -kills=$${KILLS:-20}

.PHONY: boots
boots: ## 1000 boots of a small program in a row, and 1000 of a Linux program with a child, for half an hour (LOAM_BOOTS=N for another number)
	@LOAM_BOOTS=$${LOAM_BOOTS:-1000} go test ./unikernel/image -count=1 -timeout=120m -v -run=TestBoots
	@LOAM_BOOTS=$${LOAM_BOOTS:-1000} go test ./unikernel -count=1 -timeout=120m -v -run=TestLinuxBoots

.PHONY: vmservers
vmservers: ## well-known servers in virtual machines, ten minutes for each, half an hour in all; an interrupted run continues; writes docs/servers-vm.md
	@go test ./test/servers -count=1 -timeout=3h -v -run=TestMachines -parallel=12 -all -machines=all -seconds=600 -record=$(CURDIR)/docs/servers-vm.jsonl

.PHONY: idle
idle: ## measure the host's CPU time that an idle virtual machine uses, for a few minutes: docs/idle.md
	@LOAM_IDLE_SECONDS=30 go test ./unikernel -count=1 -timeout=20m -run='^$$' -bench=Idle -benchtime=1x

.PHONY: sample
sample: ## 100 comments and 50 sentences of documents, drawn at random, to judge how well they read (SEED=n for others)
	@go run ./internal/house/sample -seed $${SEED:-1}

.PHONY: fmt
fmt: ## format every Go file
	@gofmt -s -w .
