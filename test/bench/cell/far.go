package cell

import (
	"loam/test/bench/load"
	"loam/test/bench/subject"
)

// far is the main function of the process "far", at the kernel's end of the link. If it runs the server's half of the
// load, it answers its parent as soon as the server listens. If it runs the client's half, it answers with the samples
// of the measurement.
func far(spec Spec) (answer, error) {
	<-allowed
	if err := loopbackUp(); err != nil {
		return answer{}, err
	}
	work, err := load.ByName(spec.Load, spec.Conns)
	if err != nil {
		return answer{}, err
	}
	if spec.Subject == subject.LoamXDP {
		if err := finishChecksums(linkName); err != nil {
			return answer{}, err
		}
	}
	kernel := subject.Kernel(farAddr())
	if !spec.Far {
		return answer{}, work.Serve(kernel)
	}
	samples, err := work.Run(kernel, subject.Second.Addr(), spec.Span)
	return answer{Samples: samples}, err
}
