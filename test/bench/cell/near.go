package cell

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// grace is the time that a measurement (a cell) may take in addition to the span of its load: for set-up, ten
// thousand connections, and experiments with a fixed number of rounds.
const grace = 20 * time.Second

// bootGrace is added to the time limit of a measurement that starts a whole program. Here QEMU emulates every instruction of
// a virtual machine, and the host may be busy.
const bootGrace = 3 * time.Minute

// Run runs one measurement (a cell) in processes of its own.
func Run(ctx context.Context, spec Spec) (load.Samples, error) {
	limit := 10*spec.Span + grace
	if spec.Files != nil {
		limit += bootGrace
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := start(ctx, nearVerb, spec, true)
	if err != nil {
		return nil, err
	}
	defer p.end()
	a, err := p.answer()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("not done in time: %w", ctx.Err())
	}
	return a.Samples, err
}

// near is the main function of the process "near", in which the stack under test (the subject) runs.
func near(spec Spec) (answer, error) {
	if err := loopbackUp(); err != nil {
		return answer{}, err
	}
	switch spec.Place {
	case Machine, Gateway, Wire:
		samples, err := program(spec)
		return answer{Samples: samples}, err
	}
	work, err := load.ByName(spec.Load, spec.Conns)
	if err != nil {
		return answer{}, err
	}
	stack, err := subject.ByName(spec.Subject)
	if err != nil {
		return answer{}, err
	}
	switch spec.Place {
	case Pipe, PipeGSO:
		a, b, err := stack.Pipe(spec.Place == PipeGSO)
		if err != nil {
			return answer{}, err
		}
		return between(work, a, b, spec.Span)
	case Loop:
		h, err := stack.Loop()
		if err != nil {
			return answer{}, err
		}
		return between(work, h, h, spec.Span)
	case Tap, Veth:
		return againstKernel(work, stack, spec)
	}
	return answer{}, fmt.Errorf("no place %q", spec.Place)
}

// between runs both halves of the load in this process.
func between(work load.Load, client, server subject.Host, span time.Duration) (answer, error) {
	if err := work.Serve(server); err != nil {
		return answer{}, err
	}
	samples, err := work.Run(client, server.Addr(), span)
	return answer{Samples: samples}, err
}

// againstKernel runs one half of the load in this process and the other half on the kernel's stack, in the process
// far.
func againstKernel(work load.Load, stack subject.Subject, spec Spec) (answer, error) {
	overVeth := spec.Place == Veth || stack.Name() == subject.Linux
	p, err := start(context.Background(), farVerb, spec, overVeth)
	if err != nil {
		return answer{}, err
	}
	defer p.end()
	host, err := connectFar(stack, overVeth, p.cmd.Process.Pid)
	if err != nil {
		return answer{}, err
	}
	if spec.Far {
		if err := work.Serve(host); err != nil {
			return answer{}, err
		}
		if err := p.proceed(); err != nil {
			return answer{}, err
		}
		return p.answer()
	}
	if err := p.proceed(); err != nil {
		return answer{}, err
	}
	if _, err := p.answer(); err != nil { // waits until the server of the process far is listening
		return answer{}, err
	}
	samples, err := work.Run(host, farAddr(), spec.Span)
	return answer{Samples: samples}, err
}

// connectFar creates the link to the kernel: a tap, or a veth to the namespace of process pid.
func connectFar(stack subject.Subject, overVeth bool, pid int) (subject.Host, error) {
	if on, ok := stack.(subject.OnInterface); ok && overVeth {
		if err := veth(pid, netip.Prefix{}); err != nil {
			return nil, err
		}
		return on.Interface(nearName, subject.Second)
	}
	if overVeth {
		if err := veth(pid, subject.Second); err != nil {
			return nil, err
		}
		return subject.Kernel(subject.Second.Addr()), nil
	}
	host, err := stack.Tap(linkName, subject.Second)
	if err != nil {
		return nil, err
	}
	return host, tapUp()
}

func farAddr() netip.Addr { return subject.First.Addr() }
