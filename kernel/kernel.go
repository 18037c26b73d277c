// Package kernel is what runs in ring 0 before, and will run under, the Go
// runtime of a program in a virtual machine. Today it begins and ends there: it
// sets up a console, reads what the monitor says, takes stock of memory, says so,
// and switches the machine off. Package runtime's own start is not called yet.
//
// It is entered by unikernel/overlay/_vm/runtime, on a stack and a g of its own.
// The code is ordinary Go that may not allocate, store pointers in memory, panic,
// or use what package initialisation sets: nothing of that has been made ready.
package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/frame"
)

// frames has the machine's free memory.
var frames frame.Allocator

// Start is called by the entry code with the physical address of what the monitor
// says. It does not return.
func Start(info uint64) {
	startConsole()
	say("loam: in ring 0\n")
	var machine boot.Info
	if p := boot.ParsePVH(physical(boot.WindowAtBoot), info, &machine); p != "" {
		say("loam: ")
		say(string(p))
		say("\n")
		powerOff(statusFailed)
	}
	frames.Window = windowAddress
	for _, r := range machine.Usable[:machine.Ranges] {
		// What lies below 1 MiB, or below the program's end, is not free; what
		// is above WindowAtBoot cannot be seen yet.
		frames.Add(max(r.Start, imageEnd()), min(r.End, boot.WindowAtBoot))
	}
	free, _ := frames.Pages()
	say("loam: ")
	sayInt(free * amd64.PageSize >> 20)
	say(" MiB of memory are free\n")
	powerOff(0)
}

// imageEnd is the physical address behind the program and the page tables of the
// entry code.
func imageEnd() uint64 {
	end := uint64(boot.Load)
	header := physical(boot.Load + amd64.PageSize)[boot.Load:]
	for at := 0; ; {
		s, next, ok := boot.NextSegment(header, at)
		if !ok {
			return end
		}
		end, at = max(end, s.End-boot.Image), next
	}
}
