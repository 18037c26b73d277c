package kernel

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"loam/boot/acpi"
)

// Starting the other CPUs, and the tables of firmware that name them.

// processorBehaviour is the reaction of a CPU to startup interrupts.
type processorBehaviour struct {
	attempt int    // the startup interrupt at which it starts; 0: never
	claims  uint64 // nanoseconds until it claims its structure
	starts  uint64 // nanoseconds until it has started
	stops   bool   // it claims its structure and then stops
}

// startMachine returns a machine with one CPU that runs and others that behave in some way, by the ID of their APIC.
func startMachine(t *testing.T, others map[uint32]processorBehaviour) (m *machine, resets map[uint32]int) {
	m = newMachine(t, 1, 1)
	m.pauseTime = 1e6 // so that a wait of seconds has few steps
	attempts := map[uint32]int{}
	resets = map[uint32]int{}
	m.command = func(id, command uint32) {
		const mode, reset = 7 << 8, 5 << 8
		if command&mode == reset {
			resets[id]++
			return
		}
		attempts[id]++
		b := others[id]
		if b.attempt != attempts[id] {
			return
		}
		c := &m.core.cpus[m.core.cpuCount]
		m.later(b.claims, func() { c.claimed = 1 })
		if !b.stops {
			m.later(b.claims+b.starts, func() { c.up = 1 })
		}
	}
	for id := range others {
		m.core.addProcessor(id)
	}
	slices.Sort(m.core.processors[:m.core.processorCount])
	return m, resets
}

// CPUs start one after another, at the first or the second startup interrupt. A CPU that does not start is left out.
func TestStartCPUs(t *testing.T) {
	const ms = 1_000_000
	at := func(attempt int) processorBehaviour { return processorBehaviour{attempt: attempt} }
	for _, c := range []struct {
		what   string
		others map[uint32]processorBehaviour
		want   []uint32 // IDs of the CPUs that run in addition to the first
	}{
		{"none", nil, nil},
		{"at once", map[uint32]processorBehaviour{1: at(1), 2: at(1), 3: at(1)}, []uint32{1, 2, 3}},
		{"the second interrupt", map[uint32]processorBehaviour{1: at(2), 7: at(1)}, []uint32{1, 7}},
		{"slow", map[uint32]processorBehaviour{1: {attempt: 1, claims: 150 * ms}, 2: {attempt: 2, claims: 9000 * ms}}, []uint32{1, 2}},
		{"slow after its claim", map[uint32]processorBehaviour{1: {attempt: 2, claims: 9000 * ms, starts: 5000 * ms}}, []uint32{1}},
		{"absent", map[uint32]processorBehaviour{1: {}, 2: at(1), 3: {}}, []uint32{2}},
		{"the first CPU is in the list", map[uint32]processorBehaviour{0: at(1), 1: at(1)}, []uint32{1}},
	} {
		m, resets := startMachine(t, c.others)
		m.core.startCPUs()
		var got []uint32
		for i := range m.core.cpuCount - 1 {
			p := &m.core.cpus[i+1]
			got = append(got, p.apic)
			if p.number != i+1 || p.self != addressOf(p) || p.core != addressOf(m.core) {
				t.Errorf("%s: CPU %d is not prepared", c.what, i+1)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: CPUs %d run, want %d", c.what, got, c.want)
		}
		if resets[0] != 0 {
			t.Errorf("%s: the first CPU is reset", c.what)
		}
	}
}

// The structure of a CPU that did not start in time is claimed, so that the CPU halts if it starts later.
func TestLateCPU(t *testing.T) {
	m, _ := startMachine(t, map[uint32]processorBehaviour{1: {}})
	m.core.startCPUs()
	if m.core.cpus[1].claimed == 0 {
		t.Error("a CPU that starts late would use a structure that belongs to no CPU")
	}
}

// A CPU that stops while it starts may be doing anything, so the machine ends.
func TestStoppedCPU(t *testing.T) {
	m, _ := startMachine(t, map[uint32]processorBehaviour{1: {attempt: 1, stops: true}})
	if status := m.ends(m.core.startCPUs); status != statusFailed || !strings.Contains(string(m.output), "a processor stopped while it started") {
		t.Errorf("status %d, output %q", status, m.output)
	}
}

// Without memory at the address of the startup code, or with more CPUs than the core can use, those CPUs are not started.
func TestUnusedCPUs(t *testing.T) {
	others := map[uint32]processorBehaviour{}
	for id := range uint32(100) {
		others[id] = processorBehaviour{attempt: 1}
	}
	m, _ := startMachine(t, others)
	m.core.startCPUs()
	if m.core.cpuCount != maxCPUs {
		t.Errorf("%d CPUs run", m.core.cpuCount)
	}
	m, resets := startMachine(t, others)
	m.core.machine.Usable[0].Start = startPage + pageSize/2
	m.core.startCPUs()
	if m.core.cpuCount != 1 || len(resets) != 0 {
		t.Errorf("%d CPUs run, without memory for their code", m.core.cpuCount)
	}
}

// modelIOAPIC is the physical address of an I/O APIC in the model: memory with its version register in the window.
const modelIOAPIC = 48 << 20

// putIOAPIC gives an I/O APIC inputs.
func (m *machine) putIOAPIC(pa uint64, inputs uint32) {
	const window = 0x10
	*word32(uint64(m.core.window) + pa + window) = (inputs - 1) << 16
}

// The MADT lists processors, also those with large IDs and those listed twice, and I/O APICs with the numbers of their inputs.
func TestReadMADT(t *testing.T) {
	m := newMachine(t, 1, 1)
	le := binary.LittleEndian
	madt := make([]byte, 44)
	processor := func(id uint8, flags byte) { madt = append(madt, 0, 8, 0, id, flags, 0, 0, 0) }
	wide := func(id uint32) {
		madt = append(madt, 9, 16, 0, 0)
		madt = le.AppendUint32(madt, id)
		madt = append(madt, 1, 0, 0, 0, 0, 0, 0, 0)
	}
	chip := func(address, first uint32) {
		madt = append(madt, 1, 12, 0, 0)
		madt = le.AppendUint32(le.AppendUint32(madt, address), first)
	}
	processor(0, 1)
	processor(4, 1)
	processor(6, 0) // not enabled
	processor(4, 1)
	wide(4)
	wide(300)
	chip(modelIOAPIC, 0)
	chip(modelIOAPIC+0x1000, 24)
	m.putIOAPIC(modelIOAPIC, 24)
	m.putIOAPIC(modelIOAPIC+0x1000, 8)
	k := m.core
	k.readMADT(acpi.MADT(madt))
	if got := k.processors[:k.processorCount]; !slices.Equal(got, []uint32{0, 4, 300}) {
		t.Errorf("processors %d", got)
	}
	if k.ioapicCount != 2 || k.ioapics[0].inputs != 24 || k.ioapics[1].first != 24 || k.ioapics[1].inputs != 8 {
		t.Errorf("%d I/O APICs: %+v", k.ioapicCount, k.ioapics[:2])
	}
	for id, want := range map[[2]uint8]uint32{{0, 0}: 0, {0, 23}: 23} {
		if gsi, ok := k.globalNumber(id[0], id[1]); !ok || gsi != want {
			t.Errorf("input %d of I/O APIC %d has the number %d, %v", id[1], id[0], gsi, ok)
		}
	}
	if gsi, ok := k.globalNumber(0, 24); ok {
		t.Errorf("an input that does not exist has the number %d", gsi)
	}
}

// The inputs of I/O APICs that an MP table lists are numbered one after another.
func TestNumbersOfInputs(t *testing.T) {
	m := newMachine(t, 1, 1)
	k, first := m.core, uint32(0)
	for i, inputs := range []uint32{24, 16, 8} {
		pa := uint64(modelIOAPIC + i*0x1000)
		m.putIOAPIC(pa, inputs)
		first += k.addIOAPIC(pa, first, uint8(9+i))
	}
	for _, c := range []struct {
		id, input uint8
		want      uint32
		ok        bool
	}{{9, 0, 0, true}, {9, 23, 23, true}, {9, 24, 0, false}, {10, 0, 24, true}, {11, 7, 47, true}, {12, 0, 0, false}} {
		if gsi, ok := k.globalNumber(c.id, c.input); gsi != c.want || ok != c.ok {
			t.Errorf("input %d of I/O APIC %d: %d, %v", c.input, c.id, gsi, ok)
		}
	}
	for range 20 {
		k.addIOAPIC(modelIOAPIC, first, 1)
	}
	if k.ioapicCount != len(k.ioapics) {
		t.Errorf("%d I/O APICs", k.ioapicCount)
	}
	if n := k.addIOAPIC(1<<40, first, 1); n != 0 {
		t.Errorf("an I/O APIC outside of the window has %d inputs", n)
	}
}
