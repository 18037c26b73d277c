package kernel

import (
	"loam/boot"
	"loam/boot/acpi"
)

// What firmware says of processors and of lines of interrupts: by ACPI, or by the older
// tables of the MultiProcessor Specification where there is no ACPI. Without either there
// is one CPU, and no interrupts by lines.

// processors are the numbers of the interrupt controllers of CPUs; set once.
var processors [maxCPUs]uint32

var processorCount int

// openFirmware finds ACPI's tables; false if the machine has none.
func openFirmware() (acpi.Tables, bool) {
	rsdp := machine.RSDP
	if rsdp == 0 {
		rsdp = acpi.FindRSDP(physicalAt)
	}
	firmware, problem := acpi.Open(physicalAt, rsdp)
	return firmware, problem == ""
}

// readFirmware does what the tables are needed for.
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

// readMPTable reads the older table. In it inputs of I/O APICs have no numbers for all of
// them together; they get those that they would have, one chip after another.
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

// addProcessor takes note of one, unless there are more than can be used. The same may be
// named twice: as it was before there was x2APIC, and as it is since.
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

// globalNumber is the number of an input among those of all I/O APICs.
func globalNumber(id, input uint8) (uint32, bool) {
	for i := range ioapics[:ioapicCount] {
		if io := &ioapics[i]; io.id == id && uint32(input) < io.inputs {
			return io.first + uint32(input), true
		}
	}
	return 0, false
}
