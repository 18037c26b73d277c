package task

import (
	"loam/abi/linux"
	"loam/task/frame"
	"loam/task/rseq"
	"loam/task/signal"
	"loam/task/trap"
)

// Handlers of signals: how a thread enters and leaves them. Package frame has the layout of the stack.

// noAltStack is the alternate stack of a thread that has none.
var noAltStack = linux.SigStack{Flags: linux.SS_DISABLE}

// handle makes the thread run a signal handler. If the stack for the handler cannot be written, the process gets SIGSEGV.
func (t *Task) handle(d signal.Delivery) {
	if t.rseq.Active() {
		t.checkAccess(rseq.Abort(callTask{t}))
	}
	x := frame.Signal{Delivery: d, Stack: t.altStack, Fault: t.thread.FaultAddress()}
	if t.onAltStack(t.registers.SP) {
		x.Stack.Flags |= linux.SS_ONSTACK
	} else {
		x.OnNext = d.Action.Flags&signal.OnStack != 0 && t.altStack.Flags&linux.SS_DISABLE == 0
	}
	b, at := frame.Build(t.frameBuffer(), t.thread, x)
	if (memory{t}).Write(at, b) != 0 || d.Action.Flags&linux.SA_RESTORER == 0 {
		t.lost(d.Info.Signal)
		return
	}
	frame.Enter(t.thread, d, at)
	if t.altStack.Flags&linux.SS_AUTODISARM != 0 {
		t.altStack = noAltStack // the frame on the stack has the old value, which sigreturn restores
	}
}

// lost ends the process, or sends it SIGSEGV, because the handler of a signal cannot run. The process ends if the signal is
// SIGSEGV itself, or if the handler of SIGSEGV has no stack either.
func (t *Task) lost(n signal.Number) {
	if n == signal.Segmentation {
		t.process.system.mu.Lock()
		t.endWithCore(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
		t.process.system.mu.Unlock()
		return
	}
	t.force(signal.Info{Signal: signal.Segmentation, Code: signal.CodeKernel})
}

// frameBuffer returns a buffer for the largest frame.
func (t *Task) frameBuffer() []byte {
	if t.frames == nil {
		t.frames = make([]byte, frame.BufferSize(t.thread.VectorSize()))
	}
	return t.frames
}

// sigreturn restores the registers and the mask from the frame of a handler (sigreturn(2)). A frame that cannot be read
// causes SIGSEGV. The machine refuses values that ring 3 must not have.
func (t *Task) sigreturn() {
	m := memory{t}
	c, errno := frame.ReadContext(t.frameBuffer(), t.thread, m.Read)
	if t.checkAccess(errno); errno != 0 {
		return
	}
	c.Registers(t.registers)
	if at := c.Vectors(); at != 0 {
		b := frame.Rest(t.frameBuffer())[:t.thread.VectorSize()]
		if errno := m.Read(b, at); errno != 0 {
			t.checkAccess(errno)
			return
		}
		t.thread.SetVectors(b)
	}
	t.altStack = c.Stack()
	t.thread.Restore()
	t.signals.SetMask(c.Mask())
	if t.signals.Deliverable() {
		t.alerted.Store(true)
	}
	if !c.Selectors(t.registers) {
		t.force(trap.Exception(t.registers))
	}
}
