package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
)

// Multiprocessing. The first CPU finds the other CPUs in firmware's tables (firmware.go) and starts them one after
// another. Each runs amd64.StartupCode in real mode, in a page below 1 MiB, then the entry code, then StartCPU.
// Afterwards all CPUs are equal.

// startPage is the physical address of the startup code, if memory exists there, as it does on PCs.
const startPage = 0x8000

// startTimes are how long to wait for a CPU after the first and the second startup interrupt, in nanoseconds. On a
// busy host a virtual CPU may not run for seconds.
var startTimes = [...]int64{200e6, 10e9}

// startCPUs starts all CPUs that firmware lists. A CPU that does not start is left out.
func startCPUs() {
	if !usable(startPage, amd64.PageSize) {
		return
	}
	for _, id := range processors[:processorCount] {
		if id <= apic.MaxID() && id != cpus[0].apic && cpuCount < maxCPUs {
			startOther(id)
		}
	}
}

// startOther starts the CPU with an APIC ID. A CPU may start after the timeout. So it has to claim the offered
// structure (cpu.claimed) before it uses anything else. A late CPU finds the structure claimed, by another CPU or
// by startOther, and halts.
func startOther(id uint32) {
	c := &cpus[cpuCount]
	c.number, c.apic = cpuCount, id
	if c.stack == 0 && !c.mapStacks() {
		return
	}
	c.prepare()
	page := bytesAt(boot.Window+startPage, amd64.PageSize)
	root := imageEnd() - boot.TablePages*amd64.PageSize
	amd64.StartupCode(page, startPage, uint32(root), have.NoExecute, uint64(entries.CPU), uint64(c.self))
	apic.Reset(id)
	if !have.Hypervisor {
		pause(10e6) // delay between the interrupts INIT and STARTUP in nanoseconds (SDM volume 3, 9.4.4.1); virtual CPUs need none
	}
	atomic.StoreUint32(&c.claimed, 0)
	up := false
	for i := 0; i < len(startTimes) && !up; i++ {
		apic.Start(id, startPage)
		up = c.isUp(startTimes[i])
	}
	if !up && atomic.SwapUint32(&c.claimed, 1) != 0 && !c.isUp(startTimes[1]) {
		must("a processor stopped while it started")
	}
	if atomic.LoadUint32(&c.up) != 0 {
		cpuCount++
	}
}

// isUp waits up to nanos nanoseconds for a CPU to start, and reports whether it has.
func (c *cpu) isUp(nanos int64) bool {
	k := heldClock()
	for end := k.now() + nanos; k.now() < end; {
		if atomic.LoadUint32(&c.up) != 0 {
			return true
		}
		amd64.Pause()
	}
	return false
}

// pause waits for nanos nanoseconds in a loop.
func pause(nanos int64) {
	k := heldClock()
	for end := k.now() + nanos; k.now() < end; {
		amd64.Pause()
	}
}

// heldClock returns a copy of the clock, for the first CPU while it does not hold the kernel's lock: CPUs that
// already run may correct the original meanwhile.
func heldClock() keeper {
	c := &cpus[0]
	lock(c)
	k := clock
	unlock(c)
	return k
}

// StartCPU is called by the entry code, once on each CPU but the first, with the CPU's structure. It returns the
// frame to resume, as Enter does; most likely that is the idle loop.
func StartCPU(self uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	c.features()
	c.install()
	apic.Enable(false)
	c.apic = apic.ID() // this may be a late CPU, not the one that startOther is starting
	atomic.StoreUint32(&c.up, 1)
	lock(c)
	return leave(c)
}

// usable reports whether a range of physical addresses is ordinary memory.
func usable(pa, size uint64) bool {
	for _, r := range machine.Usable[:machine.Ranges] {
		if pa >= r.Start && size <= r.Size() && pa-r.Start <= r.Size()-size {
			return true
		}
	}
	return false
}

// physicalAt returns a range of physical memory. It returns nil if the range is not mapped in the window, the kernel's
// mapping of physical memory.
func physicalAt(pa, size uint64) []byte {
	if pa > windowEnd || size > windowEnd-pa {
		return nil
	}
	return bytesAt(boot.Window+pa, int(size))
}
