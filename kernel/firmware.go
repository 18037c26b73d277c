package kernel

import (
	"loam/boot"
	"loam/boot/acpi"
)

// The processors and interrupt lines that firmware describes: in ACPI's tables, or without ACPI in the older tables
// of the MultiProcessor Specification. Without either there is one CPU and no line interrupts.

// openFirmware finds the ACPI tables. It returns false if the machine has none.
func (k *core) openFirmware() (acpi.Tables, bool) {
	rsdp := k.machine.RSDP
	if rsdp == 0 {
		rsdp = acpi.FindRSDP(FirmwareMemory)
	}
	firmware, problem := acpi.Open(FirmwareMemory, rsdp)
	return firmware, problem == ""
}

// readFirmware reads the tables, enables the serial port's interrupt and starts the other CPUs.
func (k *core) readFirmware() {
	if firmware, ok := k.openFirmware(); ok {
		if madt := firmware.MADT(); madt != nil {
			k.readMADT(madt)
			k.listen(madt.Route(serialIRQ))
			k.startCPUs()
			return
		}
	}
	table := boot.FindMPTable(FirmwareMemory)
	if table == nil {
		return
	}
	k.readMPTable(table)
	if id, input, level, low, ok := table.Route(serialIRQ); ok {
		if gsi, ok := k.globalNumber(id, input); ok {
			k.listen(gsi, level, low)
		}
	}
	k.startCPUs()
}

// readMADT records the processors and I/O APICs that the MADT lists.
func (k *core) readMADT(madt acpi.MADT) {
	for at := 0; ; {
		e, next, ok := madt.Next(at)
		if !ok {
			return
		}
		switch e.Kind {
		case acpi.Processor, acpi.ProcessorX2:
			if e.Enabled {
				k.addProcessor(e.APIC)
			}
		case acpi.IOAPIC:
			k.addIOAPIC(e.Address, e.GSI, 0)
		}
		at = next
	}
}

// readMPTable reads an MP table. The inputs of its I/O APICs have no global numbers. They get consecutive numbers, one I/O
// APIC after another, as with ACPI.
func (k *core) readMPTable(table boot.MPTable) {
	first := uint32(0)
	for at := 0; ; {
		e, next, ok := table.Next(at)
		if !ok {
			return
		}
		switch {
		case !e.Enabled:
		case e.Kind == boot.MPProcessor:
			k.addProcessor(uint32(e.ID))
		case e.Kind == boot.MPIOAPIC:
			first += k.addIOAPIC(e.Address, first, e.ID)
		}
		at = next
	}
}

// addProcessor records a processor, unless it is already recorded or there are more than can be used. Firmware may
// list a processor twice: in an entry for the APIC and in one for x2APIC.
func (k *core) addProcessor(id uint32) {
	for _, other := range k.processors[:k.processorCount] {
		if other == id {
			return
		}
	}
	if k.processorCount < len(k.processors) {
		k.processors[k.processorCount] = id
		k.processorCount++
	}
}

// globalNumber returns the global number (GSI) of an input of the I/O APIC with this ID; false if there is no such
// input.
func (k *core) globalNumber(id, input uint8) (uint32, bool) {
	for i := range k.ioapics[:k.ioapicCount] {
		if io := &k.ioapics[i]; io.id == id && uint32(input) < io.inputs {
			return io.first + uint32(input), true
		}
	}
	return 0, false
}
