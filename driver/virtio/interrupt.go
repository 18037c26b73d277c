package virtio

import (
	"loam/driver"
	"loam/internal/crew"
)

// interrupts holds the interrupts of a device. Depending on the device, there are three configurations:
//
//	a message for every queue and one for the configuration: each notifies its user
//	one message for all: a goroutine notifies all users
//	a line: a goroutine reads the reason from the device and notifies the users concerned
type interrupts struct {
	config <-chan struct{} // the channel that Device.Changed returns
	all    []driver.Interrupt
	shared chan struct{} // if one interrupt is for the configuration and all queues, config is this channel

	stop chan struct{} // closed by the method close; ends the goroutine
	crew crew.Crew
}

// connect allocates the interrupts of the device. If it returns an error, the method close releases those that it has
// allocated.
func (d *Device) connect() error {
	d.interrupts.stop = make(chan struct{})
	wanted := len(d.queues) + 1
	if have := d.t.vectors(); have >= wanted {
		return d.connectEach()
	} else if have > 0 {
		return d.connectShared()
	}
	i, err := d.t.line()
	if err != nil {
		return err
	}
	d.dispatch(i, d.t.acknowledge)
	return nil
}

// message allocates a message-signalled interrupt.
func (d *Device) message() (driver.Interrupt, driver.Message, error) {
	i, m, err := d.machine.Message()
	if err == nil {
		d.interrupts.all = append(d.interrupts.all, i)
	}
	return i, m, err
}

// connectEach assigns a message to the configuration and to each queue.
func (d *Device) connectEach() error {
	i, m, err := d.message()
	if err != nil {
		return err
	}
	d.interrupts.config = i.C()
	if err := d.t.setVector(-1, 0, m); err != nil {
		return err
	}
	for n, q := range d.queues {
		if q.own, m, err = d.message(); err != nil {
			return err
		}
		if err := d.t.setVector(q.index, n+1, m); err != nil {
			return err
		}
	}
	return nil
}

// connectShared assigns a single message to the configuration and all queues.
func (d *Device) connectShared() error {
	i, m, err := d.message()
	if err != nil {
		return err
	}
	if err := d.t.setVector(-1, 0, m); err != nil {
		return err
	}
	for _, q := range d.queues {
		if err := d.t.setVector(q.index, 0, m); err != nil {
			return err
		}
	}
	d.interrupts.all = nil // dispatch will add the interrupt again
	d.dispatch(i, func() uint32 { return interruptQueue | interruptConfig })
	return nil
}

// dispatch starts the goroutine for an interrupt that all queues share. reason returns the reasons for the last
// interrupt: the bits interruptQueue and interruptConfig.
func (d *Device) dispatch(i driver.Interrupt, reason func() uint32) {
	x := &d.interrupts
	x.all = append(x.all, i)
	x.shared = make(chan struct{}, 1)
	x.config = x.shared
	x.crew.Start(func() { d.distribute(i, reason) })
}

// distribute notifies the users of the queues and of the configuration after each interrupt, until close is called.
func (d *Device) distribute(i driver.Interrupt, reason func() uint32) {
	x := &d.interrupts
	for {
		select {
		case <-i.C():
		case <-x.stop:
			return
		}
		why := reason()
		i.Done()
		if why&interruptConfig != 0 {
			select {
			case x.shared <- struct{}{}:
			default:
			}
		}
		if why&interruptQueue != 0 {
			for _, q := range d.queues {
				q.ring()
			}
		}
	}
}

// close ends the goroutine and releases the interrupts. The device must be stopped.
func (x *interrupts) close() {
	if x.stop == nil {
		return
	}
	close(x.stop)
	x.crew.Wait()
	for _, i := range x.all {
		i.Close()
	}
}
