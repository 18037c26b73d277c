// Package gen is the packet engine. It sends streams of frames at given rates, by a chosen method, on one or more
// queues, and reports what was sent.
//
// Reading order: config.go (the configuration of a run), address.go (addresses that the run looks up by itself),
// lane.go (one stream on one queue), worker.go (one queue), control.go (rates that change), run.go (the run) and
// report.go (its results).
//
//	stream ─ lane ┐
//	stream ─ lane ┴ worker of queue 0 ──> sender ──> interface
//	stream ─ lane ┐
//	stream ─ lane ┴ worker of queue 1 ──> sender ──> interface
//
// A worker is a goroutine that is locked to its own thread and, where possible, to its own processor. Workers share no
// mutable state: the rate and the frame count of each stream are divided among the queues in advance, so there is no
// counter for which they compete.
//
// Package frame builds frames, package pace computes when they are sent, package measure numbers them, and package
// method sends them. At the receiving end, package sink receives and counts them.
package gen
