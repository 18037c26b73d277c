package main

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"loam/arch/amd64"
	"loam/kernel/user"
)

// refused lists instructions that the processor must reject in ring 3: code, vector of the exception, name. Intel's
// manual, volume 2, lists the exceptions of each instruction. If there are two vectors, the second one is QEMU's, which
// differs from a processor: it reads the stack of a far return with the rights of ring 0, which SMAP forbids, and it
// has neither stack faults for addresses nor INT1. LAR, LSL, VERR and VERW clear ZF for a selector of ring 0, and UD2 follows
// then.
const refused = `
0f0b 6 ud2
f4 13 hlt
fa 13 cli
fb 13 sti
ec 13 in al, dx
ee 13 out dx, al
6c 13 insb
0f011424 13 lgdt [rsp]
0f011c24 13 lidt [rsp]
0f00d8 13 ltr ax
0f00d0 13 lldt ax
0f01f0 13 lmsw ax
0f010424 13 sgdt [rsp]
0f010c24 13 sidt [rsp]
0f00c0 13 sldt ax
0f01e0 13 smsw ax
0f00c8 13 str ax
0f20c0 13 mov rax, cr0
0f22c0 13 mov cr0, rax
0f20d8 13 mov rax, cr3
0f22d8 13 mov cr3, rax
0f22e0 13 mov cr4, rax
440f22c0 13 mov cr8, rax
0f23f8 13 mov dr7, rax
0f21f8 13 mov rax, dr7
0f06 13 clts
0f08 13 invd
0f09 13 wbinvd
0f013c24 13 invlpg [rsp]
0f32 13 rdmsr
0f30 13 wrmsr
0f33 13 rdpmc
0f01f8 13 swapgs
480f07 13 sysretq
0f35 13|6 sysexit
0f34 13|6 sysenter
0f01d1 13 xsetbv
0f01ca 6 clac
0f01cb 6 stac
6a10549c6a08680000400048cf 13|14 iretq to ring 0
6a08680000400048cb 13|14 far return to ring 0
6a08680000400048ff2c24 13 far jump to ring 0
b8100000008ed8 13 mov ds, data of ring 0
b8100000008ed0 13 mov ss, data of ring 0
b8180000008ec0 13 mov es, task
b8fb7f00008ee0 13 mov fs, beyond the table
b8ff7f00008ee0 13 mov fs, beyond the local table
b8070000008ed8 13 mov ds, the first of the local table
b8070000008ee8 13 mov gs, likewise
b8330000008ed0 13 mov ss, code
31c08ed0 13 mov ss, none
cc 3 int3
cd03 3 int 3
cd02 13 int 2
cd08 13 int 8
cd0e 13 int 14
cd20 13 int 32
cd70 13 int 112, the timer
cd80 13 int 128
cdff 13 int 255
cd01 13 int 1
cd04 13 int 4
f1 1|6 int1
ce 6 into
6a23680000400048ff2c24 13 far jump to the first selector of ring 3
b9080000000f02c174020f0bf4 6 lar, code of ring 0
b9180000000f03c174020f0bf4 6 lsl, task
b9080000000f00e174020f0bf4 6 verr, code of ring 0
b9100000000f00e974020f0bf4 6 verw, data of ring 0
48b800000000000080008a00 13 read an address that is not canonical
48b800000000000080004889c450 12|13 push to one
48b80000000000008000ffe0 13 jump to one
48b8000000000000ffffffe0 13 jump to another
48b800000000008000008a00 13 read the first behind the lower half
31c08a00 14 read 0
31c0ffe0 14 jump to 0
48b800000000008fffff8a00 14 read the upper half
48b8000000000080ffff8a00 14 read the window
48b8000000000080ffffc60001 14 write to the window
48c7c0001020808a00 14 read the kernel
48c7c000102080ffe0 14 jump to the kernel
48c7c000102080c60001 14 write to the kernel
ebfd4883 14 jump to before the code
31c031d2f7f0 0 divide by zero
`

// hostile executes everything that ring 3 must not do. Each attempt must end in an exception of that thread, and other
// threads must continue.
func hostile() {
	p := newProcess(spin)
	page := user.Shared().Bytes(p.owned[codeAt])
	failed := 0
	for _, line := range strings.Split(strings.TrimSpace(refused), "\n") {
		digits, rest, _ := strings.Cut(line, " ")
		number, name, _ := strings.Cut(rest, " ")
		code, err := hex.DecodeString(digits)
		must(err)
		c := p.newThread()
		load(page, code)
		r := runOn(c)
		f := c.Registers()
		if vector := strconv.FormatUint(f.Vector, 10); r == user.Call || !slices.Contains(strings.Split(number, "|"), vector) {
			fmt.Printf("%s: %v, vector %s code %#x at %#x, want %s\n", name, r, vector, f.Code, f.IP, number)
			failed++
		}
		c.Close()
	}
	failed += forged(p)
	failed += delayed(p)
	p.close()
	fmt.Println("hostile", failed)
}

// load copies code to the start of a page.
func load(page, code []byte) {
	clear(page)
	copy(page, code)
}

// runOn runs a thread until it stops for another reason than an interrupt, and returns that reason.
func runOn(c *user.Context) user.Reason {
	for {
		if r := c.Run(); r != user.Interrupted {
			return r
		}
	}
}

// forged gives a thread flags, segment bases, stack pointers and whole trap frames that no honest program has. The
// thread and the kernel must continue. It returns the number of failures.
func forged(p *process) (failed int) {
	const (
		call2  = "0f050f050f0b" // two system calls and an invalid instruction
		flags  = 0x247ed7       // all flags except interrupt and trap, with an I/O privilege level of 3
		kernel = 0xffffffff80201000
	)
	page := user.Shared().Bytes(p.owned[codeAt])
	check := func(name string, ok bool, c *user.Context) {
		if !ok {
			fmt.Printf("%s: %+v\n", name, *c.Registers())
			failed++
		}
	}
	// twice runs code, then two system calls and an invalid instruction. It checks the registers at both calls.
	twice := func(name, code string, prepare, look func(c *user.Context) bool) {
		b, err := hex.DecodeString(code + call2)
		must(err)
		load(page, b)
		c := p.newThread()
		defer c.Close()
		check(name+" before", prepare == nil || prepare(c), c)
		for range 2 {
			check(name, runOn(c) == user.Call && look(c), c)
		}
		check(name+" after", runOn(c) == user.Exception && c.Registers().Vector == amd64.VectorInvalid && look(c), c)
	}
	harmless := func(f *amd64.Frame) bool {
		return f.Flags&amd64.FlagIOPL == 0 && f.Flags&amd64.FlagInterrupt != 0 &&
			f.CS == amd64.UserCodeSelector && f.SS == amd64.UserDataSelector
	}
	wild := func(c *user.Context) bool {
		const kept = flags &^ amd64.FlagIOPL
		return harmless(c.Registers()) && c.Registers().Flags&kept == kept
	}
	twice("popf", "68d77e24009d", nil, wild)
	twice("forged frame", "", func(c *user.Context) bool {
		f := c.Registers()
		f.Flags, f.CS, f.SS = flags, amd64.CodeSelector, amd64.DataSelector
		return true
	}, wild)
	twice("forged return", "0f05", func(c *user.Context) bool {
		ok := runOn(c) == user.Call
		c.Registers().Flags = (1<<64 - 1) &^ amd64.FlagTrap
		return ok
	}, wild)
	twice("bases of the kernel", "48c7c000102080f3480faed0f3480faed8", nil, func(c *user.Context) bool {
		fs, gs := c.Bases()
		return harmless(c.Registers()) && fs == kernel && gs == kernel
	})
	twice("stack of the kernel", "48c7c400102080", nil, func(c *user.Context) bool {
		return harmless(c.Registers()) && c.Registers().SP == kernel
	})
	twice("stack nowhere", "48bc0000000000008000", nil, func(c *user.Context) bool {
		return harmless(c.Registers()) && c.Registers().SP == 0x80_0000_0000_0000
	})
	twice("selectors", "b82b0000008ed88ec08ee08ee8", nil, func(c *user.Context) bool {
		return harmless(c.Registers())
	})

	load(page, []byte{0x90, 0x90, 0x0f, 0x0b})
	c := p.newThread()
	defer c.Close()
	for _, ip := range []uint64{1 << 47, 1 << 63, kernel, 1<<64 - 1, 0xffff_8000_0000_0000} {
		c.Registers().IP = ip
		check("wild address", runOn(c) == user.Exception && c.Registers().Vector == amd64.VectorProtection, c)
	}
	c.Registers().IP, c.Registers().Flags = codeAt, amd64.FlagTrap
	for _, at := range []uint64{codeAt + 1, codeAt + 2} {
		check("step", runOn(c) == user.Exception && c.Registers().Vector == amd64.VectorDebug && c.Registers().IP == at, c)
	}
	check("bases", c.SetBases(kernel, 0) != nil && c.SetBases(0, 1<<47) != nil, c)
	check("SYSENTER", amd64.ReadMSR(amd64.MSRSysenter) == 0, c)
	// The kernel corrects a vector state that XRSTOR rejects.
	state := make([]byte, c.VectorSize())
	for i := range state {
		state[i] = 0xff
	}
	c.SetVectors(state)
	c.Registers().Flags = 0
	check("vectors", runOn(c) == user.Exception && c.Registers().Vector == amd64.VectorInvalid, c)
	// Code at the end of the lower half of the address space: the address after the last page is not canonical.
	check("last page", p.Apply([]user.Change{{Action: user.Install, Start: user.Limit, End: user.Limit + amd64.PageSize, Physical: p.owned[codeAt]}}) != nil, c)
	return failed
}

// delayed causes debug exceptions at the first instruction of the kernel, where GS still belongs to ring 3, with a base that no
// memory of the kernel has (CVE-2018-8897). The first attempt is ring 3's own: a data breakpoint on the operand of MOV SS, whose exception a
// processor delays until after the next instruction. QEMU's emulation does not delay it: there, this attempt succeeds with
// any kernel. The second attempt works with QEMU too: instruction breakpoints at the entries for SYSCALL and INT3, which only
// this test can set. It returns the number of failures.
func delayed(p *process) (failed int) {
	const (
		data        = 0xb0001 // DR7: DR0 is a breakpoint for reads and writes of 8 bytes
		instruction = 0x5     // DR7: DR0 and DR1 are instruction breakpoints
		breakpoint  = amd64.VectorBreakpoint * 16
	)
	// wrgsbase(dataAt); push 0x2b; mov ss, [rsp]; syscall; mov ss, [rsp]; int3; mov ss, [rsp]; int1; ud2
	code, err := hex.DecodeString("b800000010f3480faed86a2b8e14240f058e1424cc8e1424f10f0b")
	must(err)
	load(user.Shared().Bytes(p.owned[codeAt]), code)
	for _, debug := range []struct {
		addresses [4]uint64
		control   uint64
	}{
		{[4]uint64{stackAt - 8}, data},
		{[4]uint64{amd64.ReadMSR(amd64.MSRLStar), uint64(entries[1]) + breakpoint}, instruction},
	} {
		c := p.newThread()
		c.SetDebug(debug.addresses, debug.control)
		c.Restore()
		for _, want := range []uint64{amd64.VectorSyscall, amd64.VectorBreakpoint, amd64.VectorInvalid} {
			for runOn(c) == user.Exception && c.Registers().Vector == amd64.VectorDebug {
			}
			_, gs := c.Bases()
			if f := c.Registers(); f.Vector != want || gs != dataAt || f.CS != amd64.UserCodeSelector {
				fmt.Printf("delayed %#x: want vector %d, GS %#x: %+v\n", debug.addresses, want, gs, *f)
				failed++
				break
			}
		}
		c.Close()
	}
	// A debug exception in ring 3 clears the breakpoints, which the processor still has.
	c := p.newThread()
	defer c.Close()
	c.Registers().Flags = amd64.FlagTrap
	if r := runOn(c); r != user.Exception || c.Registers().Vector != amd64.VectorDebug {
		fmt.Printf("step after delayed: %+v\n", *c.Registers())
		failed++
	}
	return failed
}
