package main

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel"
	"loam/kernel/user"
)

// isolated prints whether ring 3 is isolated, and the parts of the kernel that the page tables map while ring 3 runs: a thread
// reads each, and the error code of its page fault says whether a page is mapped. Then it prints whether AX of an earlier fault is in a
// page that is mapped.
func isolated() {
	p := newProcess(spin)
	page := user.Shared().Bytes(p.owned[codeAt])
	mapped := func(va uint64) bool {
		c := p.newThread()
		defer c.Close()
		code := append(binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, va), 0x8a, 0x00) // movabs rax, va; mov al, [rax]
		load(page, code)
		if r := runOn(c); r != user.Fault || c.FaultAddress() != va {
			fmt.Printf("%#x: %v, %+v\n", va, r, c.Registers())
		}
		return c.Registers().Code&amd64.FaultPresent != 0
	}
	local := new(int)
	heap := uint64(addressOf(local))
	cpus := uint64(runtime.NumCPU())
	fmt.Println("isolated", kernel.Isolated(),
		"window", mapped(boot.Window+boot.Load), "heap", mapped(heap), "stacks", mapped(boot.Stacks+128<<10-8),
		"image", mapped(boot.Image+boot.Load), "cpu", mapped(amd64.ReadMSR(amd64.MSRGSBase)),
		"table", mapped(boot.Entry), "areas", mapped(boot.Entry+amd64.PageSize), mapped(boot.Entry+cpus*amd64.PageSize),
		"after", mapped(boot.Entry+(1+cpus)*amd64.PageSize), "before", mapped(boot.Entry-1),
		"code", mapped(uint64(entries[1])), mapped(amd64.ReadMSR(amd64.MSRLStar)))
	mapped(boot.Entry - 8)
	outer := stored(boot.Entry-8, cpus)
	faultInKernel(boot.Entry - 16)
	fmt.Println("registers of ring 3", outer, "of the kernel", stored(boot.Entry-16, cpus))
	p.close()
}

// faultInKernel causes a page fault in ring 0 while AX is the address.
func faultInKernel(va uintptr) {
	debug.SetPanicOnFault(true)
	defer func() {
		if recover() == nil {
			panic("the address is mapped")
		}
	}()
	kernelWord(va)
}

// stored reports whether the area of a CPU has a value. There are no areas if ring 3 is not isolated.
func stored(value, cpus uint64) bool {
	const first = boot.Entry + amd64.PageSize
	for at := uintptr(first); kernel.Isolated() && at < first+uintptr(cpus)*amd64.PageSize; at += 8 {
		if kernelWord(at) == value {
			return true
		}
	}
	return false
}

// endless runs a thread in ring 3 that never leaves it by itself.
func endless() {
	c := newProcess(spin).newThread()
	fmt.Println("ready")
	for c.Run() == user.Interrupted {
	}
}

// idle runs a thread in ring 3 for a moment. Then the CPU has nothing to do.
func idle() {
	c := newProcess(calls).newThread()
	runOn(c)
	fmt.Println("ready")
	time.Sleep(time.Hour)
}
