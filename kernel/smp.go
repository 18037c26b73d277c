package kernel

import (
	"sync/atomic"

	"loam/arch/amd64"
	"loam/boot"
)

// More than one CPU. The first finds the others in firmware's tables (firmware.go) and
// starts them one after another: each comes from real mode by amd64.StartupCode, in a page
// below 1 MiB, to the entry code and to StartCPU. From then on all are alike.

// startPage is where the code for that is put, if memory is there; it has been so
// for as long as there are PCs.
const startPage = 0x8000

// startTimes are how long a CPU may take to come up after it was told to the first
// and the second time. On a busy host a virtual one may not run for seconds.
var startTimes = [...]int64{200e6, 10e9}

// startCPUs starts all that firmware has named. One that does not come up is left out.
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

// startOther starts one. A CPU may come when nobody waits for it any more, so it has
// to claim the structure that is offered, before it uses anything else; who comes
// too late finds it claimed, by another or by us, and stops.
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
		pause(10e6) // SDM volume 3, 9.4.4.1; virtual ones need no time
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

// isUp waits for a CPU, but not longer than a time.
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

// pause waits, and does nothing else.
func pause(nanos int64) {
	k := heldClock()
	for end := k.now() + nanos; k.now() < end; {
		amd64.Pause()
	}
}

// heldClock is the clock as it is now, for the first CPU while it has no lock: those that
// are up already may correct the other one meanwhile.
func heldClock() keeper {
	c := &cpus[0]
	lock(c)
	k := clock
	unlock(c)
	return k
}

// StartCPU is called by the entry code on another CPU than the first, once, with
// its structure. What it returns is gone on with: most likely nothing to do.
func StartCPU(self uintptr) (frameAt, vector uintptr) {
	c := cpuAt(self)
	c.features()
	c.install()
	apic.Enable(false)
	c.apic = apic.ID() // another than was meant may have come
	atomic.StoreUint32(&c.up, 1)
	lock(c)
	return leave(c)
}

// usable reports whether there is memory at a physical address.
func usable(pa, size uint64) bool {
	for _, r := range machine.Usable[:machine.Ranges] {
		if pa >= r.Start && size <= r.Size() && pa-r.Start <= r.Size()-size {
			return true
		}
	}
	return false
}

// physicalAt is memory by physical address; nil if it cannot be seen.
func physicalAt(pa, size uint64) []byte {
	if pa > windowEnd || size > windowEnd-pa {
		return nil
	}
	return bytesAt(boot.Window+pa, int(size))
}
