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
const startPage = boot.StartPage

// startTimes are how long to wait for a CPU after the first and the second startup interrupt, in nanoseconds. On a
// busy host a virtual CPU may not run for seconds.
var startTimes = [...]int64{200e6, 10e9}

// startCPUs starts all CPUs that firmware lists. A CPU that does not start is left out.
func (k *core) startCPUs() {
	if !k.usable(startPage, amd64.PageSize) {
		return
	}
	for _, id := range k.processors[:k.processorCount] {
		if id <= k.apic.MaxID() && id != k.cpus[0].apic && k.cpuCount < maxCPUs {
			k.startOther(id)
		}
	}
}

// startOther starts the CPU with an APIC ID. A CPU may start after the timeout. So it has to claim the offered
// structure (cpu.claimed) before it uses anything else. A late CPU finds the structure claimed, by another CPU or
// by startOther, and halts.
func (k *core) startOther(id uint32) {
	c := &k.cpus[k.cpuCount]
	c.number, c.apic = k.cpuCount, id
	if c.stack == 0 && !k.mapStacks(c) {
		return
	}
	k.prepare(c)
	page := bytesAt(uint64(k.window)+startPage, amd64.PageSize)
	root := k.imageEnd() - boot.TablePages*amd64.PageSize
	amd64.StartupCode(page, startPage, uint32(root), k.have.NoExecute, uint64(entries.CPU), uint64(c.self))
	k.apic.Reset(id)
	if !k.have.Hypervisor {
		k.pause(10e6) // delay between the interrupts INIT and STARTUP in nanoseconds (SDM volume 3, 9.4.4.1); virtual CPUs need none
	}
	atomic.StoreUint32(&c.claimed, 0)
	up := false
	for i := 0; i < len(startTimes) && !up; i++ {
		k.apic.Start(id, startPage)
		up = k.isUp(c, startTimes[i])
	}
	if !up && atomic.SwapUint32(&c.claimed, 1) != 0 && !k.isUp(c, startTimes[1]) {
		k.must("a processor stopped while it started")
	}
	if atomic.LoadUint32(&c.up) != 0 {
		k.cpuCount++
	}
}

// isUp waits up to nanos nanoseconds for a CPU to start, and reports whether it has.
func (k *core) isUp(c *cpu, nanos int64) bool {
	t := k.heldClock()
	for end := t.now() + nanos; t.now() < end; {
		if atomic.LoadUint32(&c.up) != 0 {
			return true
		}
		amd64.Pause()
	}
	return false
}

// pause waits for nanos nanoseconds in a loop.
func (k *core) pause(nanos int64) {
	t := k.heldClock()
	for end := t.now() + nanos; t.now() < end; {
		amd64.Pause()
	}
}

// heldClock returns a copy of the clock, for the first CPU while it does not hold the kernel's lock: CPUs that
// already run may correct the original meanwhile.
func (k *core) heldClock() keeper {
	c := &k.cpus[0]
	k.lock(c)
	held := k.clock
	k.unlock(c)
	return held
}

// StartCPU is called by the entry code, once on each CPU but the first, with the CPU's structure. It returns the
// frame to resume, as Enter does; most likely that is the idle loop.
func StartCPU(self uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	k := c.kernel()
	k.features(c)
	k.install(c)
	k.apic.Enable(false)
	c.apic = k.apic.ID() // this may be a late CPU, not the one that startOther is starting
	atomic.StoreUint32(&c.up, 1)
	k.lock(c)
	return k.leave(c)
}

// usable reports whether a range of physical addresses is ordinary memory.
func (k *core) usable(pa, size uint64) bool {
	for _, r := range k.machine.Usable[:k.machine.Ranges] {
		if pa >= r.Start && size <= r.Size() && pa-r.Start <= r.Size()-size {
			return true
		}
	}
	return false
}

// physicalAt returns a range of physical memory. It returns nil if the range is not mapped in the window, the kernel's
// mapping of physical memory.
func (k *core) physicalAt(pa, size uint64) []byte {
	if pa > k.windowEnd || size > k.windowEnd-pa {
		return nil
	}
	return bytesAt(uint64(k.window)+pa, int(size))
}
