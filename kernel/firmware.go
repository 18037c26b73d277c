package kernel

import (
	"loam/boot"
	"loam/boot/acpi"
)

// The processors and interrupt lines that firmware describes: in ACPI's tables, or without ACPI in the older tables
// of the MultiProcessor Specification. Without either there is one CPU and no line interrupts.

// processors holds the IDs of the CPUs' local APICs; set once.
var processors [maxCPUs]uint32

var processorCount int

// openFirmware finds the ACPI tables. It returns false if the machine has none.
func openFirmware() (acpi.Tables, bool) {
	rsdp := machine.RSDP
	if rsdp == 0 {
		rsdp = acpi.FindRSDP(physicalAt)
	}
	firmware, problem := acpi.Open(physicalAt, rsdp)
	return firmware, problem == ""
}

// readFirmware reads the tables, enables the serial port's interrupt and starts the other CPUs.
func readFirmware() {
	if firmware, ok := openFirmware(); ok {
		if madt := firmware.MADT(); madt != nil {
			readMADT(madt)
			listen(madt.Route(serialIRQ))
			startCPUs()
			return
		}
	}
	table := boot.FindMPTable(physicalAt)
	if table == nil {
		return
	}
	readMPTable(table)
	if id, input, level, low, ok := table.Route(serialIRQ); ok {
		if gsi, ok := globalNumber(id, input); ok {
			listen(gsi, level, low)
		}
	}
	startCPUs()
}

// readMADT records the processors and I/O APICs that the MADT lists.
func readMADT(madt acpi.MADT) {
	for at := 0; ; {
		e, next, ok := madt.Next(at)
		if !ok {
			return
		}
		switch e.Kind {
		case acpi.Processor, acpi.ProcessorX2:
			if e.Enabled {
				addProcessor(e.APIC)
			}
		case acpi.IOAPIC:
			addIOAPIC(e.Address, e.GSI, 0)
		}
		at = next
	}
}

// readMPTable reads an MP table. The inputs of its I/O APICs have no global numbers. They get consecutive numbers, one I/O
// APIC after another, as with ACPI.
func readMPTable(table boot.MPTable) {
	first := uint32(0)
	for at := 0; ; {
		e, next, ok := table.Next(at)
		if !ok {
			return
		}
		switch {
		case !e.Enabled:
		case e.Kind == boot.MPProcessor:
			addProcessor(uint32(e.ID))
		case e.Kind == boot.MPIOAPIC:
			first += addIOAPIC(e.Address, first, e.ID)
		}
		at = next
	}
}

// addProcessor records a processor, unless it is already recorded or there are more than can be used. Firmware may
// list a processor twice: in an entry for the APIC and in one for x2APIC.
func addProcessor(id uint32) {
	for _, other := range processors[:processorCount] {
		if other == id {
			return
		}
	}
	if processorCount < len(processors) {
		processors[processorCount] = id
		processorCount++
	}
}

// globalNumber returns the global number (GSI) of an input of the I/O APIC with this ID; false if there is no such
// input.
func globalNumber(id, input uint8) (uint32, bool) {
	for i := range ioapics[:ioapicCount] {
		if io := &ioapics[i]; io.id == id && uint32(input) < io.inputs {
			return io.first + uint32(input), true
		}
	}
	return 0, false
}
