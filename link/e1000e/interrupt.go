package e1000e

import (
	"errors"

	"loam/driver/pci"
	"loam/link"
)

// causes are the interrupt causes of a card, which depend on the kind of its interrupts.
type causes struct{ receive, send, other uint32 }

// With MSI-X, each direction has a vector of its own. A message clears its cause and masks it, so that Recv and Send
// need no access to a register when they are notified. They unmask the cause when they wait for it again. A third vector
// is for the cable.
//
// Without MSI-X, the goroutine of loop reads the causes, masks the causes of both directions, and notifies
// Recv and Send.

// connect connects the interrupts: MSI-X, or MSI, or the interrupt line.
func (d *Device) connect() error {
	r := d.registers
	d.causes = causes{receive: causeReceived | causeLow | causeOverrun, send: causeSent, other: causeLink}
	x, err := d.f.MSIX()
	switch {
	case err == nil && x.Len() >= vectors && !d.old:
		d.messages = x
		return d.connectVectors()
	case err == nil:
		x.Close()
	case !errors.Is(err, pci.ErrNoMSIX):
		return err
	}
	r.Write32(regThrottle, throttleInterval)
	i, m, err := d.machine.Message()
	if err != nil {
		return err
	}
	if err = d.f.MSI(m); errors.Is(err, pci.ErrNoMSI) {
		i.Close()
		d.line = true
		i, err = d.f.Line()
	}
	if err != nil {
		return err
	}
	d.interrupts = append(d.interrupts, i)
	d.queue.receiver.interrupt = make(chan struct{}, 1)
	d.queue.receiver.wake = d.queue.receiver.interrupt
	return nil
}

// connectVectors connects the vectors of MSI-X (section 7.4.1).
func (d *Device) connectVectors() error {
	r := d.registers
	for v := range vectors {
		i, m, err := d.machine.Message()
		if err != nil {
			return err
		}
		d.interrupts = append(d.interrupts, i)
		if err := d.messages.Set(v, m); err != nil {
			return err
		}
		r.Write32(regVectorRate+4*v, throttleInterval)
	}
	d.causes = causes{receive: causeQueueRx, send: causeQueueTx, other: causeOther | causeLink}
	r.Write32(regVectors, vectorsAll)
	r.Write32(regAutoClear, causeQueueRx|causeQueueTx)
	r.Write32(regAutoMask, causeQueueRx|causeQueueTx)
	r.Write32(regExtended, r.Read32(regExtended)|extendedAutoMask|extendedClearPending|extendedLoaded)
	d.queue.receiver.wake = d.interrupts[vectorReceive].C()
	return nil
}

// loop handles interrupts until the device is closed or has failed. It runs on a goroutine of its own.
func (d *Device) loop() {
	i, handle := d.interrupts[0], d.handle
	if d.messages != nil {
		i, handle = d.interrupts[vectorOther], d.handleOther
	}
	for {
		select {
		case <-i.C():
			handle()
			i.Done()
			continue
		case <-d.done:
		}
		break
	}
	if !errors.Is(d.state(), link.ErrClosed) {
		// The card is not trusted any more: it must neither access memory nor assert its line.
		d.registers.Write32(regMask, ^uint32(0))
		d.f.Disable()
	}
	if d.line {
		// The line may be shared. After an interrupt, it would stay masked for its other users.
		d.registers.Write32(regMask, ^uint32(0))
		i.Close()
		d.interrupts = nil
	}
}

// handleOther handles the vector of all causes that do not belong to a direction.
func (d *Device) handleOther() {
	v, ok := d.read(regCause)
	if !ok {
		return
	}
	d.registers.Write32(regCause, v&^(d.causes.receive|d.causes.send))
	// The read has cleared all causes. The causes of both directions are raised again: the card may not have sent their
	// messages yet.
	if again := v & (d.causes.receive | d.causes.send); again != 0 {
		d.registers.Write32(regRaise, again)
	}
	d.readLink()
	d.registers.Write32(regUnmask, d.causes.other)
}

// unmask clears and unmasks causes. When it returns, the card has carried out both writes. The bus may delay writes:
// without the read, a frame that arrives after the caller has looked at the ring could have its cause cleared.
func (d *Device) unmask(causes uint32) {
	d.registers.Write32(regCause, causes)
	d.registers.Write32(regUnmask, causes)
	d.read(regStatus)
}

// handle handles the only interrupt of a card without MSI-X. It may be the interrupt of another device on the same line.
func (d *Device) handle() {
	v, ok := d.read(regCause)
	if v &= d.causes.receive | d.causes.send | d.causes.other; !ok || v == 0 {
		return
	}
	// The directions are masked before they are notified, so that they find their causes masked when they unmask them.
	d.registers.Write32(regMask, v&(d.causes.receive|d.causes.send))
	d.registers.Write32(regCause, v)
	if v&d.causes.receive != 0 {
		select {
		case d.queue.receiver.interrupt <- struct{}{}:
		default: // Recv is already notified
		}
	}
	if v&d.causes.send != 0 {
		d.queue.sender.interrupted()
	}
	if v&d.causes.other != 0 {
		d.readLink()
	}
}
