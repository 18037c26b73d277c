package kernel

import (
	"sync/atomic"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// Services of the kernel for package kernel/user, which runs threads in ring 3: physical pages, roots of
// address spaces, and interrupts to other CPUs. Entering and leaving ring 3 needs no call.

// CanRunUser reports whether the CPU has the features that ring 3 requires: XSAVE, FSGSBASE and NX.
func CanRunUser() bool {
	k := &machineCore
	return k.runsUser()
}

func (k *core) runsUser() bool { return k.have.XSave && k.have.FSGSBase && k.have.NoExecute }

// VectorSize returns the size of the vector registers in the format of XSAVE, in bytes.
func VectorSize() int {
	k := &machineCore
	return int(k.xsaveSize)
}

// SavesVectors reports whether XSAVE saves all vector registers of ring 3. Otherwise XSAVE saves only the x87
// state, and moves save the SSE and AVX registers.
func SavesVectors() bool { return userVectors == vectorsAll }

// VectorComponents returns the components of the vector registers, as bits of XCR0.
func VectorComponents() uint64 {
	k := &machineCore
	return k.xsaveComponents
}

// ClockScale returns the nanoseconds for each tick of the time stamp counter, with 32 fraction bits, as they are now. The
// clock itself is corrected from time to time; see package timekeeper.
func ClockScale() uint64 {
	k := &machineCore
	return atomic.LoadUint64(k.clock.Scale())
}

// userCall serves the calls from CallTake to CallClock. It returns ENOSYS for any other number.
func (k *core) userCall(c *cpu, f *amd64.Frame) int64 {
	switch f.AX {
	case CallTake:
		return k.takePages(f.DI, f.SI)
	case CallGive:
		return k.givePages(f.DI, f.SI)
	case CallTakeTable:
		return k.takeTable()
	case CallTakeBlock:
		return k.takeBlock()
	case CallGiveBlock:
		k.pages.FreeBlock(f.DI)
		return 0
	case CallSpace:
		return k.newRoot(f.DI)
	case CallFlush:
		if f.DI>>c.number&1 != 0 {
			flushAll()
		}
		if k.flushOthers(f.DI, f.SI != 0) {
			return 0
		}
		return 1
	case CallRetire:
		k.retire(c, f.DI, f.SI)
		return 0
	case CallSave:
		if f.DI == uint64(c.number) {
			c.save()
		} else if f.DI < uint64(k.cpuCount) {
			k.flushOthers(1<<f.DI, true)
		}
		return 0
	case CallKick:
		if f.DI < uint64(k.cpuCount) {
			k.kick(&k.cpus[f.DI])
		}
		return 0
	case CallMove:
		k.move(c, f.DI)
		return 0
	case CallWhere:
		return int64(c.number)
	case CallClock:
		k.shareClock(f.DI)
		return 0
	}
	return -int64(linux.ENOSYS)
}

// reserved is the share of memory that ring 3 does not get, as a divisor. The kernel's heap grows into it while the memory of
// a killed process is freed; without it, programs that use all memory would end the machine.
const reserved = 16

// alarm is the part of the reserve, in quarters, below which a further page of the heap is reported by Short. The rest is for
// system calls that are in progress, and for the collector.
const alarm = 3

// Short returns a flag that is set when the kernel's heap has grown and less than three quarters of the reserve are free. A
// user of the reserve frees memory and then clears the flag.
func Short() *atomic.Bool {
	k := &machineCore
	return &k.short
}

// Reserve returns the number of free pages below which ring 3 gets no more of a number of pages of memory.
func Reserve(total int64) int64 { return total / reserved }

// watch sets the flag short if the page that the heap has just got came from the last part of the reserve.
func (k *core) watch() {
	if free, total := k.pages.Pages(); free < total/reserved*alarm/4 {
		k.short.Store(true)
	}
}

// takePages fills an array with the addresses of free pages, which are not zeroed. It returns the number of pages,
// fewer than count if only the reserve is left.
func (k *core) takePages(addr, count uint64) int64 {
	if count > 1<<16 || !k.touch(addr, count*8, space.Write) {
		return -int64(linux.EFAULT)
	}
	for i := range count {
		if free, total := k.pages.Pages(); free <= total/reserved {
			return int64(i)
		}
		pa, ok := k.pages.Take()
		if !ok {
			return int64(i)
		}
		*word(addr + i*8) = pa
	}
	return int64(count)
}

// takeTable returns the physical address of a zeroed page for a page table, and ENOMEM if half of the reserve is in use. The
// reserve is for pages that are in memory already, for example if a big page is no longer mapped as a whole: most
// often no process has to be ended for a table.
func (k *core) takeTable() int64 {
	if free, total := k.pages.Pages(); free <= total/(2*reserved) {
		return -int64(linux.ENOMEM)
	}
	return k.zeroedPage()
}

// zeroedPage returns the physical address of a zeroed page, or ENOMEM.
func (k *core) zeroedPage() int64 {
	pa, ok := k.pages.Alloc()
	if !ok {
		return -int64(linux.ENOMEM)
	}
	return int64(pa)
}

// takeBlock returns the physical address of a block of 2 MiB, and ENOMEM if none is free. Blocks are only for a machine with
// ample memory: a program gets the last part of its memory page by page, so that it uses no more than it needs.
func (k *core) takeBlock() int64 {
	const (
		ample      = 8 // share of memory that stays free, as a divisor
		blockPages = amd64.BigPageSize / amd64.PageSize
	)
	if free, total := k.pages.Pages(); free < total/ample+blockPages {
		return -int64(linux.ENOMEM)
	}
	pa, ok := k.pages.Contiguous(blockPages)
	if !ok {
		return -int64(linux.ENOMEM)
	}
	return int64(pa)
}

// givePages frees an array of pages.
func (k *core) givePages(addr, count uint64) int64 {
	if count > 1<<16 || !k.touch(addr, count*8, space.Read) {
		return -int64(linux.EFAULT)
	}
	for i := range count {
		k.pages.Free(*word(addr + i*8))
	}
	return 0
}

// newRoot creates the root page table of an address space: an empty lower half and the kernel's upper half. If second is not 0, it
// is the physical address of a zeroed page, which becomes the root table for ring 3.
func (k *core) newRoot(second uint64) int64 {
	if !k.pinRoot() {
		return -int64(linux.ENOMEM)
	}
	root := k.zeroedPage()
	if root > 0 {
		k.copyUpper(uint64(root), k.tables.Root)
		if second != 0 {
			k.copyUpper(second, k.ring3.Root)
		}
	}
	return root
}

// copyUpper copies the upper half of a root table.
func (k *core) copyUpper(to, from uint64) {
	const half = amd64.PageSize / 2
	copy(bytesAt(uint64(k.window)+to+half, half), bytesAt(uint64(k.window)+from+half, half))
}

// pinRoot allocates every table that the kernel's root table will ever refer to, so that copies of the root stay
// valid. It does so when the first process is created: programs without processes do not need these 64 tables.
func (k *core) pinRoot() bool {
	if k.tables.Pinned {
		return true
	}
	const each = 512 * amd64.HugePageSize // number of bytes that one entry of the root table covers
	for va := uint64(boot.DynamicLow); va < boot.DynamicHigh; va += each {
		if !k.tables.Reserve(va, k.allocPage) {
			return false
		}
	}
	k.tables.Pinned = true
	return true
}

// retire makes the CPUs of a set leave an address space: they switch to the kernel's address space. Other CPUs do not have it, and
// are not interrupted.
func (k *core) retire(c *cpu, root, who uint64) {
	atomic.StoreUint64(&k.retired, root)
	if c.root == root {
		k.forget(c)
	}
	k.flushOthers(who, true)
	atomic.StoreUint64(&k.retired, 0)
}

// Offsets of fields in a context of package kernel/user, for the method save. A test of that package checks them.
const (
	ContextGSBase = 192
	ContextLive   = 224
	ContextVector = 256
)

// save stores the x87 state and the base of GS of the context that is in the processor, if there is one.
func (c *cpu) save() {
	if c.user == 0 {
		return
	}
	const x87 = 1
	amd64.XSave(c.user+ContextVector, x87)
	*word(uint64(c.user) + ContextGSBase) = amd64.ReadMSR(amd64.MSRKernelGS)
	atomic.StoreUint32(word32(uint64(c.user)+ContextLive), 0)
	c.user = 0
}

// forget serves a request of another CPU to flush translations. It first stores the x87 state that the processor
// still holds for a thread in ring 3. Then it drops all translations. It leaves the address space if that is retired. A CPU
// that is idle leaves it too: otherwise each later removal of a page table would interrupt this CPU again and wait for it.
func (k *core) forget(c *cpu) {
	c.save()
	retired := c.root == atomic.LoadUint64(&k.retired)
	if !retired && (c.active == 0 || c.current != thread.None) {
		flushAll()
		return
	}
	set := c.active
	c.root, c.active = k.tables.Root, 0
	amd64.WriteCR3(k.tables.Root)
	if !retired {
		atomic.AndUint64(word(uint64(set)), ^(uint64(1) << c.number)) // after the write, which drops the translations
	}
}
