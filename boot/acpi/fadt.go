package acpi

// The Fixed ACPI Description Table (ACPI 6.5 section 5.2.9): the registers that switch the machine off and report
// the power button.

// Space is the address space of a register.
type Space uint8

// Supported address spaces, with the numbers of table 5.1.
const (
	SpaceMemory Space = 0
	SpacePort   Space = 1
)

// Register is the Generic Address Structure (section 5.2.3.2). The zero value is no register.
type Register struct {
	Address uint64
	Space   Space
}

const gasLen = 12

// parseGAS reads a register. It returns the zero value for an unsupported space or an address out of range.
func parseGAS(b []byte) Register {
	r := Register{Space: Space(b[0]), Address: le.Uint64(b[4:])}
	const ports, physical = 1 << 16, 1 << 52
	if r.Space > SpacePort || r.Space == SpacePort && r.Address >= ports || r.Address >= physical {
		return Register{}
	}
	return r
}

// Power holds the registers for power control, which table FADT lists.
type Power struct {
	Interrupt uint32 // GSI of the system control interrupt

	// Registers of hardware that is not hardware-reduced (section 4.8.3). Event1A consists of a status half and an
	// enable half, of EventLen/2 bytes each.
	Event1A, Control1A, Control1B Register
	EventLen                      int

	// To enter ACPI mode, write Enable to I/O port Command. If Command is 0, the machine is always in ACPI mode.
	Command uint16
	Enable  uint8

	// Registers of a hardware-reduced machine (flag HW_REDUCED_ACPI). It has these one-byte registers instead of
	// Event1A, Control1A and Control1B (section 4.8.3.7).
	Reduced       bool
	Sleep, Status Register

	Reset      Register // writing ResetValue to it resets the machine; the zero value if this is not supported
	ResetValue uint8

	// ButtonIsFixed reports that the power button is a bit of Event1A; otherwise it is a separate device.
	ButtonIsFixed bool
}

// Timer returns the register of the power management timer (section 4.8.3.3), a 24-bit counter of TimerFrequency.
// ok is false if there is none.
func (t *Tables) Timer() (r Register, ok bool) {
	b := t.Find("FACP")
	if len(b) < fadtLen || le.Uint32(b[112:])&flagReduced != 0 {
		return r, false
	}
	if b[91] == 4 { // PM_TMR_LEN: length of the timer's register in bytes
		r = portRegister(b[76:])
	}
	if len(b) >= 208+gasLen {
		if x := parseGAS(b[208:]); x.Address != 0 {
			r = x
		}
	}
	return r, r != Register{}
}

// TimerFrequency is the frequency of the power management timer, in Hz.
const TimerFrequency = 3579545

// Flags of the FADT (section 5.2.9, table 5.10).
const (
	flagPowerButton = 1 << 4 // the power button is a separate device, not a bit of the fixed registers
	flagReset       = 1 << 10
	flagReduced     = 1 << 20
)

const fadtLen = 116 // length of the table in bytes in revision 1, the shortest

// Power reads the FADT; ok is false if there is none.
func (t *Tables) Power() (p Power, ok bool) {
	b := t.Find("FACP")
	if len(b) < fadtLen {
		return p, false
	}
	flags := le.Uint32(b[112:])
	p = Power{
		Interrupt: uint32(le.Uint16(b[46:])),
		Event1A:   portRegister(b[56:]),
		Control1A: portRegister(b[64:]),
		Control1B: portRegister(b[68:]),
		EventLen:  int(b[88]),
		Enable:    b[52],

		Reduced:       flags&flagReduced != 0,
		ButtonIsFixed: flags&(flagPowerButton|flagReduced) == 0,
	}
	if command := le.Uint32(b[48:]); command < 1<<16 {
		p.Command = uint16(command)
	}
	if flags&flagReset != 0 && len(b) >= 129 {
		p.Reset, p.ResetValue = parseGAS(b[116:]), b[128]
	}
	p.extended(b)
	if p.EventLen != 4 { // on all real hardware, each half has 16 bits
		p.Event1A, p.ButtonIsFixed = Register{}, false
	}
	return p, true
}

// extended reads the 64-bit forms of the registers' addresses, which take precedence over the 32-bit forms. It reads
// only those that the table is long enough to contain.
func (p *Power) extended(b []byte) {
	for _, f := range [...]struct {
		at int
		r  *Register
	}{{148, &p.Event1A}, {172, &p.Control1A}, {184, &p.Control1B}, {244, &p.Sleep}, {256, &p.Status}} {
		if len(b) < f.at+gasLen {
			return
		}
		if r := parseGAS(b[f.at:]); r.Address != 0 {
			*f.r = r
		}
	}
}

// portRegister returns the register at an I/O port whose address is the 32-bit number in b; the zero value if the
// address is out of range.
func portRegister(b []byte) Register {
	if port := le.Uint32(b); port > 0 && port < 1<<16 {
		return Register{Address: uint64(port), Space: SpacePort}
	}
	return Register{}
}

// DSDT returns the code of the Differentiated System Description Table, to which the FADT points, without its
// header; nil if there is none.
func (t *Tables) DSDT() []byte {
	b := t.Find("FACP")
	if len(b) < fadtLen {
		return nil
	}
	var dsdt []byte
	if len(b) >= 148 {
		dsdt = t.table(le.Uint64(b[140:]), maxTable)
	}
	if dsdt == nil {
		dsdt = t.table(uint64(le.Uint32(b[40:])), maxTable)
	}
	if dsdt == nil || string(dsdt[:4]) != "DSDT" {
		return nil
	}
	return dsdt[headerLen:]
}
