package signal

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func user(n Number) Info { return Info{Signal: n, Code: CodeUser, PID: 7} }

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestHandler: a handler runs with its mask and its signal blocked, and sigreturn restores the old mask.
func TestHandler(t *testing.T) {
	p, th := NewProcess()
	th.SetMask(SetOf(5))
	p.SetAction(10, Action{Handler: 0x1000, Mask: SetOf(12, Kill)})
	want(t, "woken", p.Send(user(10), true).Wake, th)
	d := th.Next()
	want(t, "effect", d.Effect, Handle)
	want(t, "mask in the handler", th.Mask(), SetOf(5, 10, 12))
	want(t, "mask to restore", d.Mask, SetOf(5))
	p.SetAction(10, Action{Handler: 0x1000, Flags: NoDefer | ResetHandler})
	th.SetMask(0)
	p.Send(user(10), true)
	want(t, "effect", th.Next().Effect, Handle)
	want(t, "mask with SA_NODEFER", th.Mask(), Set(0))
	p.Send(user(10), true)
	want(t, "effect after SA_RESETHAND", th.Next().Effect, Terminate)
}

// TestOrder: signals of faults are delivered first, then the lowest number. Signals to the thread precede those to
// the process. Equal real-time signals keep their order.
func TestOrder(t *testing.T) {
	p, th := NewProcess()
	for n := Number(1); n <= Last; n++ {
		p.SetAction(n, Action{Handler: 0x1000, Flags: NoDefer})
	}
	th.SetMask(^Set(0))
	for i, n := range []Number{40, 12, 40, 34, 1, Segmentation, 12} {
		p.Send(Info{Signal: n, Code: CodeQueue, Value: uint64(i)}, true)
	}
	th.Send(user(13), true)
	th.SetMask(0)
	var got []Number
	var values []uint64
	for d := th.Next(); d.Effect == Handle; d = th.Next() {
		got = append(got, d.Info.Signal)
		values = append(values, d.Info.Value)
	}
	if !slices.Equal(got, []Number{13, Segmentation, 1, 12, 34, 40, 40}) || !slices.Equal(values, []uint64{0, 5, 4, 1, 3, 0, 2}) {
		t.Errorf("%v, %v", got, values)
	}
}

// TestSeek: a blocked signal that a thread waits for neither ends the process nor is discarded.
func TestSeek(t *testing.T) {
	p, th := NewProcess()
	other := p.Clone(SetOf(15, Child))
	th.SetMask(SetOf(2, 15, Child))
	th.Seek(SetOf(15, Child, 10))
	o := p.Send(user(15), true)
	want(t, "woken", o.Wake, th)
	want(t, "kill", o.Kill, false)
	want(t, "woken by an ignored signal", p.Send(user(Child), true).Wake, th)
	for _, n := range []Number{15, Child} {
		i, ok := th.Take(SetOf(15, Child, 10))
		want(t, "taken", ok, true)
		want(t, "taken", i.Signal, n)
	}
	want(t, "kill by a signal that was not blocked", p.Send(user(10), true).Kill, true)
	th.Take(SetOf(10))
	th.Sought()
	want(t, "mask", th.Mask(), SetOf(2, 15, Child))
	o = p.Send(user(15), true)
	want(t, "woken without a wait", o.Wake == nil, true)
	want(t, "kill without a wait", o.Kill, false)
	want(t, "the other thread", other.Deliverable(), false)
}

// TestStops: SIGCONT cancels pending stops, stops cancel SIGCONT; SIGCONT resumes even if it is blocked or ignored.
func TestStops(t *testing.T) {
	p, th := NewProcess()
	th.SetMask(^Set(0))
	p.Send(user(TerminalStop), true)
	th.Send(user(TerminalIn), true)
	want(t, "resumes", p.Send(user(Continue), true).Resume, true)
	want(t, "pending after SIGCONT", th.Pending(), SetOf(Continue))
	p.Send(user(TerminalOut), true)
	want(t, "pending after SIGTTOU", th.Pending(), SetOf(TerminalOut))
	p.SetAction(Continue, Action{Handler: Ignore})
	want(t, "resumes though ignored", p.Send(user(Continue), true).Resume, true)
	th.SetMask(0)
	p.Send(user(Stop), true)
	want(t, "effect of SIGSTOP", th.Next().Effect, Suspend)
}

// TestIgnored: ignored signals vanish when they are sent, and when they become ignored; blocked ones wait.
func TestIgnored(t *testing.T) {
	p, th := NewProcess()
	want(t, "SIGCHLD wakes", p.Send(user(Child), true).Wake == nil, true)
	want(t, "pending", th.Pending(), Set(0))
	th.SetMask(SetOf(Child, 10))
	p.Send(user(Child), true)
	p.Send(user(10), true)
	want(t, "pending while blocked", th.Pending(), SetOf(Child, 10))
	p.SetAction(10, Action{Handler: Ignore})
	want(t, "pending after SIG_IGN", th.Pending(), SetOf(Child))
	want(t, "SIGKILL is changed", p.SetAction(Kill, Action{Handler: Ignore}), false)
	th.SetMask(^Set(0))
	want(t, "blocked", th.Mask()&unblockable, Set(0))
	want(t, "SIGKILL kills", p.Send(user(Kill), true).Kill, true)
}

// TestRoom: when RLIMIT_SIGPENDING is reached, sigqueue and tgkill fail; kill succeeds, but its signal has no siginfo.
func TestRoom(t *testing.T) {
	p, th := NewProcess()
	th.SetMask(^Set(0))
	want(t, "sigqueue", p.Send(Info{Signal: 40, Code: CodeQueue}, false).Full, true)
	want(t, "tgkill", p.Send(Info{Signal: 40, Code: CodeThread}, false).Full, true)
	want(t, "pending", th.Pending(), Set(0))
	want(t, "kill", p.Send(user(40), false).Full, false)
	i, ok := th.Take(SetOf(40))
	want(t, "taken", ok && i == Info{Signal: 40}, true)
}

// TestForce: a signal of a fault ends the process if it is blocked or ignored. Otherwise its handler runs, also in
// process 1.
func TestForce(t *testing.T) {
	for _, test := range []struct {
		name   string
		action Action
		mask   Set
		init   bool
		effect Effect
	}{
		{"default", Action{}, 0, false, Core},
		{"default in init", Action{}, 0, true, Core},
		{"ignored", Action{Handler: Ignore}, 0, false, Core},
		{"handled", Action{Handler: 9}, 0, false, Handle},
		{"handled and blocked", Action{Handler: 9}, SetOf(Segmentation), false, Core},
	} {
		p, th := NewProcess()
		p.Init = test.init
		p.SetAction(Segmentation, test.action)
		th.SetMask(test.mask)
		th.Force(Info{Signal: Segmentation, Code: 1, Addr: 0x10})
		d := th.Next()
		want(t, test.name, d.Effect, test.effect)
		want(t, test.name+": address", d.Info.Addr, uint64(0x10))
	}
}

// TestInit: signals without a handler do not reach process 1, not even SIGKILL.
func TestInit(t *testing.T) {
	p, th := NewProcess()
	p.Init = true
	want(t, "SIGKILL", p.Send(user(Kill), true), Outcome{})
	p.SetAction(15, Action{Handler: 9})
	want(t, "handled", p.Send(user(15), true).Wake, th)
}

// TestThreads: a signal for the process goes to a thread that does not block it; a signal for one thread only to that
// thread.
func TestThreads(t *testing.T) {
	p, first := NewProcess()
	second := p.Clone(0)
	p.SetAction(10, Action{Handler: 9})
	first.SetMask(SetOf(10))
	want(t, "woken", p.Send(user(10), true).Wake, second)
	want(t, "first", first.Next().Effect, None)
	want(t, "second", second.Next().Effect, Handle)
	want(t, "sent to the first", first.Send(user(10), true).Wake == nil, true)
	second.SetMask(0)
	want(t, "second", second.Next().Effect, None)
	second.Exit()
	_, child := first.Fork()
	want(t, "pending in the child", child.Pending(), Set(0))
	want(t, "mask of the child", child.Mask(), SetOf(10))
	first.Exec()
	want(t, "handler after exec", p.Action(10).Handler, uint64(Default))
	want(t, "pending after exec", first.Pending(), SetOf(10))
}

// TestSuspend: the mask that sigsuspend sets stays until the handler returns, which restores the previous mask.
func TestSuspend(t *testing.T) {
	p, th := NewProcess()
	p.SetAction(10, Action{Handler: 9, Flags: Restart})
	th.SetMask(SetOf(10))
	p.Send(user(10), true)
	th.Suspend(0)
	d := th.Next()
	want(t, "mask to restore", d.Mask, SetOf(10))
	th.Suspend(SetOf(12))
	th.Resume()
	want(t, "mask after a wait without a signal", th.Mask(), SetOf(10))
	for kind, restarts := range map[Interrupted]bool{Restartable: true, Always: true, NoHandler: false, Rest: false} {
		want(t, "restarts", Restarts(kind, d), restarts)
		want(t, "restarts without a handler", Restarts(kind, Delivery{Effect: Suspend}), true)
	}
}

// TestModel: random sequences of operations have the same results as a model that searches a list of pending signals.
func TestModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		p, th := NewProcess()
		th.SetMask(^Set(0))
		var model [2][]Info // pending signals of the thread and of the process
		for n := Number(1); n <= Last; n++ {
			p.SetAction(n, Action{Handler: 9, Flags: NoDefer})
		}
		for step := range 200 {
			if r.IntN(3) > 0 {
				i := Info{Signal: Number(1 + r.IntN(int(Last))), Code: CodeQueue, Value: uint64(step)}
				if unblockable.Has(i.Signal) {
					continue
				}
				if to := r.IntN(2); to == 0 {
					th.Send(i, true)
					modelSend(&model, 0, i)
				} else {
					p.Send(i, true)
					modelSend(&model, 1, i)
				}
				continue
			}
			s := Set(r.Uint64() & ^uint64(step) >> 1)
			got, ok := th.Take(s)
			if expected, found := modelTake(&model, s); got != expected || ok != found {
				t.Fatalf("seed %d, step %d: take %v, %v, want %v, %v", seed, step, got, ok, expected, found)
			}
		}
	}
}

func modelSend(model *[2][]Info, to int, i Info) {
	for q := range model {
		model[q] = slices.DeleteFunc(model[q], func(o Info) bool {
			return i.Signal == Continue && stops.Has(o.Signal) || stops.Has(i.Signal) && o.Signal == Continue
		})
	}
	for _, o := range model[to] {
		if o.Signal == i.Signal && i.Signal < 32 {
			return
		}
	}
	model[to] = append(model[to], i)
}

func modelTake(model *[2][]Info, s Set) (Info, bool) {
	for q := range model {
		best := -1
		rank := func(i int) int {
			n := model[q][i].Signal
			if synchronous.Has(n) {
				return int(n)
			}
			return int(n) + 100
		}
		for i, o := range model[q] {
			if s.Has(o.Signal) && (best < 0 || rank(i) < rank(best)) {
				best = i
			}
		}
		if best >= 0 {
			i := model[q][best]
			model[q] = slices.Delete(model[q], best, best+1)
			return i, true
		}
	}
	return Info{}, false
}
