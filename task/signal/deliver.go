package signal

// Delivery describes how a signal is delivered to a thread that is about to return to its program.
type Delivery struct {
	Effect Effect
	Info   Info
	Action Action // the handler, if Effect is Handle
	// Mask is the signal mask that sigreturn restores. The handler runs with the thread's new mask.
	Mask Set
}

// Next removes the next signal that the thread does not block from the pending signals, and returns how it is delivered. It
// updates the mask and the dispositions. If no such signal is pending, it returns None.
func (t *Thread) Next() Delivery {
	for {
		i, ok := t.Dequeue()
		if !ok {
			return Delivery{}
		}
		if d := t.Deliver(i); d.Effect != None {
			return d
		}
	}
}

// Dequeue removes the next signal that the thread does not block. A debugger inspects it before Deliver.
func (t *Thread) Dequeue() (Info, bool) { return t.Take(^t.Mask()) }

// Take removes a pending signal that is in s. Signals of the thread are taken before signals of the process. sigtimedwait
// and signalfd use it to take blocked signals.
func (t *Thread) Take(s Set) (Info, bool) {
	if i, ok := t.pending.take(s); ok {
		return i, true
	}
	return t.process.pending.take(s)
}

// Deliver changes mask and dispositions as the delivery of a signal does. If the signal is ignored, the Effect of the
// result is None.
func (t *Thread) Deliver(i Info) Delivery {
	p := t.process
	a := p.actions[i.Signal]
	switch a.Handler {
	case Ignore:
		return Delivery{}
	case Default:
		if e := defaultEffect(i.Signal); !p.Init {
			return Delivery{Effect: e, Info: i}
		}
		return Delivery{}
	}
	if a.Flags&ResetHandler != 0 {
		p.actions[i.Signal].Handler = Default
	}
	d := Delivery{Effect: Handle, Info: i, Action: a, Mask: t.Mask()}
	if t.suspended { // a handler runs, so the mask of a waiting call (sigsuspend) ends
		d.Mask, t.suspended = t.saved, false
	}
	mask := t.Mask() | a.Mask
	if a.Flags&NoDefer == 0 {
		mask |= SetOf(i.Signal)
	}
	t.SetMask(mask)
	return d
}

// Force sends a signal that the thread's own instruction caused. If it is blocked or ignored, the
// thread could not continue: the disposition becomes the default, and the signal is delivered.
func (t *Thread) Force(i Info) {
	p := t.process
	if t.Mask().Has(i.Signal) || p.actions[i.Signal].Handler == Ignore {
		p.actions[i.Signal] = Action{}
	}
	if p.actions[i.Signal].Handler == Default {
		p.Init = false // process 1 is also killed by its own faults
	}
	t.SetMask(t.Mask() &^ SetOf(i.Signal))
	t.pending.remove(SetOf(i.Signal)) // this signal, which has the address of the fault, replaces one that is pending
	t.pending.add(i, true)
}

// Interrupted classifies system calls by their end after an interruption by a signal (signal(7), Interruption of
// system calls).
type Interrupted uint8

// Values of Interrupted: how a system call reacts to a signal that interrupts it.
const (
	// Restartable calls restart if the handler has SA_RESTART: read, write, wait4, futex.
	Restartable Interrupted = iota
	// Always restarts, whether or not the handler has SA_RESTART.
	Always
	// NoHandler restarts only if no handler ran: pause, sigsuspend, ppoll.
	NoHandler
	// Rest restarts the call with the remaining time, unless a handler ran: nanosleep, poll.
	Rest
)

// Restarts reports whether an interrupted call is made again after a delivery, instead of returning EINTR.
func Restarts(kind Interrupted, d Delivery) bool {
	if d.Effect != Handle {
		return true
	}
	return kind == Always || kind == Restartable && d.Action.Flags&Restart != 0
}
