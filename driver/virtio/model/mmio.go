package model

// mmioDevice provides the registers of a device over MMIO (virtio 1.2 section 4.2.2).
type mmioDevice struct {
	*Device
	gsi uint32
}

// Addresses, sizes and interrupt numbers of the devices that AddMMIO adds.
const (
	mmioBase = 0xfeb0_0000
	mmioSize = 0x200
	mmioGSI  = 16
)

// AddMMIO adds a device with the given number of queues to the machine. It returns the address and the size of the
// device's registers, and the number of its interrupt line.
func (m *Machine) AddMMIO(d *Device, queues int) (address uint64, size int, gsi uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := len(m.windows)
	t := &mmioDevice{d, mmioGSI + uint32(i)}
	m.windows = append(m.windows, window{mmioBase + uint64(i)*mmioSize, mmioSize, t})
	d.start(m, queues, func(uint16, uint8) { m.lines.Set(t.gsi, true) })
	return mmioBase + uint64(i)*mmioSize, mmioSize, t.gsi
}

// Offsets of the registers, in the order of the standard (virtio 1.2 section 4.2.2).
const (
	mMagic = 0x000 + 4*iota
	mVersion
	mKind
	mVendor
	mDeviceFeatures
	mDeviceFeaturesSel
	_
	_
	mDriverFeatures
	mDriverFeaturesSel
	_
	_
	mQueueSel
	mQueueNumMax
	mQueueNum
	_
	_
	mQueueReady
	_
	_
	mQueueNotify
	_
	_
	_
	mInterruptStatus
	mInterruptACK
	_
	_
	mStatus
	_
	_
	_
	mDesc
	mDescHigh
	_
	_
	mDriver
	mDriverHigh
	_
	_
	mDevice
	mDeviceHigh
	mGeneration = 0x0fc
	mConfig     = 0x100
)

func (t *mmioDevice) read(at, width int) uint64 {
	if h := t.Hostile; h != nil && h.Read != nil {
		return h.Read(at, width, t.answer(at, width))
	}
	return t.answer(at, width)
}

// answer returns the correct value of a register.
func (t *mmioDevice) answer(at, width int) uint64 {
	d := t.Device
	d.mu.Lock()
	defer d.mu.Unlock()
	if at >= mConfig {
		return d.readConfig(at-mConfig, width)
	}
	q := d.queue()
	switch at {
	case mMagic:
		return 0x74726976
	case mVersion:
		return 2
	case mKind:
		return uint64(d.Kind)
	case mDeviceFeatures:
		return d.Features >> (32 * d.selectors[0]) & 0xffff_ffff
	case mQueueNumMax:
		if q != nil {
			return uint64(d.MaxQueue)
		}
	case mQueueReady:
		if q != nil && q.enabled {
			return 1
		}
	case mInterruptStatus:
		return uint64(d.isr)
	case mStatus:
		return uint64(d.status)
	case mGeneration:
		return uint64(d.generation)
	}
	return 0
}

func (t *mmioDevice) write(at, width int, v uint64) {
	d := t.Device
	switch at {
	case mStatus:
		d.setStatus(uint8(v))
		return
	case mQueueNotify:
		d.Poke()
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at {
	case mDeviceFeaturesSel:
		d.selectors[0] = uint32(v)
	case mDriverFeaturesSel:
		d.selectors[1] = uint32(v)
	case mDriverFeatures:
		setHalf(&d.accepted, d.selectors[1] != 0, v)
	case mQueueSel:
		d.queueSelect = int(v)
	case mInterruptACK:
		d.isr &^= uint8(v)
		if d.isr == 0 {
			d.machine.lines.Set(t.gsi, false)
		}
	default:
		if q := d.queue(); q != nil {
			q.set(at, v)
		}
	}
}

// set writes to a register of the selected queue.
func (q *Queue) set(at int, v uint64) {
	switch at {
	case mQueueNum:
		q.size = int(v)
	case mQueueReady:
		q.enabled = v != 0
	case mDesc, mDescHigh:
		setHalf(&q.desc, at == mDescHigh, v)
	case mDriver, mDriverHigh:
		setHalf(&q.avail, at == mDriverHigh, v)
	case mDevice, mDeviceHigh:
		setHalf(&q.used, at == mDeviceHigh, v)
	}
}

// setHalf sets the upper or lower 32 bits of a 64-bit register.
func setHalf(to *uint64, high bool, v uint64) {
	if high {
		*to = *to&0xffff_ffff | v<<32
	} else {
		*to = *to&^uint64(0xffff_ffff) | v&0xffff_ffff
	}
}
