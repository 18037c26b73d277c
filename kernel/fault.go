package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/signal"
	"loam/kernel/space"
)

// fault handles an exception of the running thread. Most are page faults on memory that has not been populated yet.
// All others become signals, as on Linux, from which the Go runtime makes panics.
func (k *core) fault(c *cpu, f *amd64.Frame) {
	n, info := signal.Segment, signal.Info{Code: signal.CodeKernel}
	switch f.Vector {
	case amd64.VectorPage:
		addr := amd64.ReadCR2()
		code, served := k.pageFault(addr, f.Code)
		if served {
			return
		}
		info.Code, info.Value = code, addr
	case amd64.VectorDivide:
		n, info.Code, info.Value = signal.FloatTrap, signal.CodeDivide, f.IP
	case amd64.VectorX87, amd64.VectorSIMD:
		n, info.Code, info.Value = signal.FloatTrap, signal.CodeFloat, f.IP
	case amd64.VectorBreakpoint, amd64.VectorDebug:
		n, info.Code = signal.Trap, signal.CodeBreakpoint
	case amd64.VectorInvalid:
		n, info.Code, info.Value = signal.Illegal, signal.CodeOperand, f.IP
	case amd64.VectorStack, amd64.VectorAlign:
		n, info.Code = signal.Bus, signal.CodeKernel
	}
	info.Number = n
	th := k.threads.At(c.current)
	if th.Mask&uint64(signal.Of(n)) != 0 || k.actions[n].Effect(n) != signal.Handle {
		k.crash(c, f, "the program failed where nothing could be told")
	}
	k.callHandler(th, info)
}

// pageFault populates the page of an address if the program has the rights to it. Otherwise it returns the code of
// the signal to send.
func (k *core) pageFault(addr, code uint64) (signalCode int32, served bool) {
	region, ok := k.regionAt(addr)
	if !ok {
		if addr >= boot.Image && code&amd64.FaultPresent != 0 {
			return signal.CodeNotAllowed, false
		}
		return signal.CodeNotMapped, false
	}
	want := space.Read
	switch {
	case code&amd64.FaultFetch != 0:
		want = space.Execute
	case code&amd64.FaultWrite != 0:
		want = space.Write
	}
	if region.Rights&want == 0 {
		return signal.CodeNotAllowed, false
	}
	if entry, _ := k.tables.Lookup(addr); entry&amd64.PagePresent != 0 {
		amd64.InvalidatePage(addr) // another CPU has mapped the page meanwhile, or has added rights
		return 0, true
	}
	if !k.populate(addr&^(amd64.PageSize-1), region) {
		k.outOfMemory()
	}
	return 0, true
}

// outOfMemory ends the machine when no page is left for memory that the program has mapped.
func (k *core) outOfMemory() {
	_, total := k.pages.Pages()
	k.say("loam: out of memory: the program uses all of the ")
	k.sayInt(total * amd64.PageSize >> 20)
	k.say(" MiB that are free for it, and wants more; give the machine more (-m)\n")
	k.powerOff(statusOutOfMemory)
}
