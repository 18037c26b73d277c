package kernel

import (
	"time"

	"loam/arch/amd64"
	"loam/boot"
	"loam/boot/acpi"
	"loam/kernel/timekeeper"
)

// The devices of the model of a machine (model_test.go): local APICs, the serial port, the ports of the loam command, the
// interval timer, the real-time clock, a reference clock, and the source of random numbers.

// modelDevices is the state of the devices, and their settings. The zero values of the settings describe a PC without a
// serial input, without the loam command, and without a real-time clock.
type modelDevices struct {
	counterKHz, apicKHz uint64 // rates of the time stamp counter and of the timers of the local APICs
	pauseTime           uint64 // time that a PAUSE instruction takes, in nanoseconds
	cpuid               map[uint32][4]uint32
	random              func() (v uint64, ok bool) // the processor's source of random numbers; nil: a seeded generator
	command             func(id, command uint32)   // receives INIT and STARTUP; may be nil
	kicks               int                        // number of interrupts that CPUs have sent to CPUs
	planned             []event
	enabled             func(msr uint32, v uint64) // is called when a CPU writes a model-specific register; may be nil

	output   []byte // bytes written to the serial port
	arriving []arrival
	busy     int // number of polls until the serial port has room for bytes
	noSerial bool
	scratch  uint8

	controlled bool              // the loam command has started the machine
	streams    map[uint16][]byte // bytes written to the ports of the loam command
	asked      func()            // serves a request for the time; nil: the port does not exist

	rtc      func() int64 // returns the time of the real-time clock in seconds since 1970; nil: it does not exist
	rtcIndex uint8

	noTimer  bool // the interval timer does not exist
	pitBegan uint64
	pitBytes []byte // bytes that the next reads of the interval timer return
}

// event is something that happens at a time.
type event struct {
	at uint64
	do func()
}

// later makes something happen after a time in nanoseconds, when a CPU next executes PAUSE.
func (m *machine) later(after uint64, do func()) {
	m.planned = append(m.planned, event{m.ticks + after, do})
}

// happen makes the events happen whose time has come.
func (m *machine) happen() {
	for len(m.planned) > 0 && m.planned[0].at <= m.ticks {
		m.planned[0].do()
		m.planned = m.planned[1:]
	}
}

// arrival is a byte that arrives on the serial port at a time.
type arrival struct {
	at uint64
	b  byte
}

func newModelDevices() modelDevices {
	const gigahertz = 1e6
	return modelDevices{counterKHz: gigahertz, apicKHz: gigahertz, pauseTime: 100, streams: map[uint16][]byte{}}
}

// counter returns the time stamp counter.
func (m *machine) counter() uint64 { return timekeeper.MulDiv(m.ticks, m.counterKHz, 1e6) }

// arrive makes bytes arrive on the serial port after a time in nanoseconds.
func (m *machine) arrive(after uint64, bytes ...byte) {
	for _, b := range bytes {
		m.arriving = append(m.arriving, arrival{m.ticks + after, b})
	}
}

// Registers of the local APIC in x2APIC mode.
const (
	msrAPICID      = 0x802
	msrAPICEnd     = 0x80b
	msrAPICCommand = 0x830
	msrAPICInitial = 0x838
	msrAPICCurrent = 0x839
)

func (p *modelCPU) readMSR(msr uint32) uint64 {
	switch msr {
	case msrAPICID:
		return uint64(p.cpu.apic)
	case msrAPICCurrent:
		if p.timer > p.machine.ticks {
			return timekeeper.MulDiv(p.timer-p.machine.ticks, p.machine.apicKHz, 1e6)
		}
		return 0
	}
	return p.msrs[msr]
}

func (p *modelCPU) writeMSR(msr uint32, v uint64) {
	m := p.machine
	switch msr {
	case msrAPICCommand:
		const mode = 7 << 8 // bits of the delivery mode; 0: an ordinary interrupt
		if v&mode == 0 {
			m.kicks++
			m.cpus[v>>32].raise(v & 0xff)
		} else if m.command != nil {
			m.command(uint32(v>>32), uint32(v))
		}
	case msrAPICInitial:
		p.timer = 0
		if v != 0 {
			p.timer = m.ticks + timekeeper.MulDiv(v, 1e6, m.apicKHz)
		}
	case msrAPICEnd:
		// The interrupt with the highest priority ends first. Interrupts of the timer and kicks end before the core does anything
		// else, so only device interrupts remain.
		p.serving = p.serving && m.core.cpus[p.cpu.number].rung == 0
	default:
		p.msrs[msr] = v
		if m.enabled != nil {
			m.enabled(msr, v)
		}
	}
}

// Ports of the model.
const (
	modelReference = 0x608
	pitChannel     = 0x40
	pitCommand     = 0x43
	rtcIndexPort   = 0x70
	rtcDataPort    = 0x71
	nothing        = 0xff // value that a read of a port without a device returns
)

func (m *machine) in8(port uint16) uint8 {
	switch port {
	case serialStatus:
		return m.serialStatus()
	case serialData:
		if len(m.arriving) > 0 && m.arriving[0].at <= m.ticks {
			b := m.arriving[0].b
			m.arriving = m.arriving[1:]
			return b
		}
	case serialScratch:
		if !m.noSerial {
			return m.scratch
		}
	case boot.PortOutput, boot.PortErrors, boot.PortControl:
		if m.controlled {
			return portAnswer
		}
	case boot.PortTime:
		if m.asked != nil {
			return portAnswer
		}
	case rtcDataPort:
		return m.rtcRegister()
	case pitChannel:
		if len(m.pitBytes) > 0 && !m.noTimer {
			b := m.pitBytes[0]
			m.pitBytes = m.pitBytes[1:]
			return b
		}
	}
	return nothing
}

func (m *machine) serialStatus() (status uint8) {
	if m.busy > 0 {
		m.busy--
	} else {
		status = serialRoom
	}
	if len(m.arriving) > 0 && m.arriving[0].at <= m.ticks {
		status |= serialReady
	}
	return status
}

// rtcRegister returns the selected register of the real-time clock, which counts in binary and in 24 hours.
func (m *machine) rtcRegister() uint8 {
	if m.rtc == nil {
		return nothing
	}
	now := time.Unix(m.rtc(), 0).UTC()
	switch m.rtcIndex &^ 0x80 {
	case 0x00:
		return uint8(now.Second())
	case 0x02:
		return uint8(now.Minute())
	case 0x04:
		return uint8(now.Hour())
	case 0x07:
		return uint8(now.Day())
	case 0x08:
		return uint8(now.Month())
	case 0x09:
		return uint8(now.Year() % 100)
	case 0x32:
		return uint8(now.Year() / 100)
	}
	const binary, hours24 = 1 << 2, 1 << 1
	return binary | hours24
}

func (m *machine) out8(port uint16, v uint8) {
	switch port {
	case serialData:
		m.output = append(m.output, v)
	case serialScratch:
		m.scratch = v
	case boot.PortOutput, boot.PortErrors:
		m.streams[port] = append(m.streams[port], v)
	case boot.PortControl:
		if m.controlled {
			m.ended, m.status = true, uint32(v)
			panic(machineEnds{})
		}
	case boot.PortTime:
		m.asked()
	case rtcIndexPort:
		m.rtcIndex = v
	case pitChannel:
		m.pitBegan = m.ticks
	case pitCommand:
		m.pitCommand(v)
	}
}

// pitCommand serves a command of the interval timer: latch the count, or the status.
func (m *machine) pitCommand(command uint8) {
	const latch, status = 0, 0b11_1_0_001_0
	switch command {
	case latch:
		count := ^uint16(timekeeper.MulDiv(m.ticks-m.pitBegan, amd64.PITFrequency, 1e9))
		m.pitBytes = []byte{byte(count), byte(count >> 8)}
	case status:
		m.pitBytes = []byte{0}
	}
}

func (m *machine) in32(port uint16) uint32 {
	if port == modelReference {
		return uint32(timekeeper.MulDiv(m.ticks, acpi.TimerFrequency, 1e9))
	}
	return 1<<32 - 1
}

func (m *machine) out32(port uint16, v uint32) {
	if port == exitPort {
		m.ended, m.status = true, v
		panic(machineEnds{})
	}
}

// randomNumber returns a number of the processor's source of random numbers.
func (m *machine) randomNumber() (v uint64, ok bool) {
	if m.random != nil {
		return m.random()
	}
	return m.rng.Uint64(), true
}
