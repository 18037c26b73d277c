// Package gen is the packet engine: it sends streams of frames by a method, at
// the rates that they ask for, on as many queues as are wanted, and tells what it
// did.
//
// Read config.go (what a run is told), address.go (what it finds out by itself),
// lane.go (one stream on one queue), worker.go (one queue), run.go, report.go
// (what it tells).
//
//	stream ─ lane ┐
//	stream ─ lane ┴ worker of queue 0 ──> sender ──> interface
//	stream ─ lane ┐
//	stream ─ lane ┴ worker of queue 1 ──> sender ──> interface
//
// A worker is a goroutine with a thread, and a processor, of its own. It shares
// nothing with the others: each stream is divided over the queues beforehand, its
// rate and its frames, so that no counter is contended.
//
// What stands below: package frame makes frames, pace says when they go, measure
// numbers them, method sends them. Package sink is the other end.
package gen
