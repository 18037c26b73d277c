// Package probe asks millions of addresses whether they are there, and loses no
// answer: ICMP echo, TCP SYN and UDP over IPv4 and IPv6.
//
// It remembers nothing about a probe. Whom to ask next is computed (space.go, and
// package target below it), what an answer must look like is hashed (tag.go), and
// a bit for each question tells who has answered (seen.go). So a run takes as much
// memory as it has questions, in bits, and what it needs to go on after an
// interruption is a Checkpoint and the results so far.
//
// Read in this order: config.go (what a run is told, and what it tells), run.go
// and schedule.go (the goroutines), plan.go and throttle.go (whom, and how fast),
// form.go and answer.go (frames out and in), output.go and state.go (results and
// checkpoints as text).
//
//	scheduler ──work──> senders ──frames──>  network
//	   ^  ^                │                    │
//	   │  └─────free───────┘                    v
//	   └──caught up, seen── receivers <──frames── rings
//	                            └──found──> recorder ──> results, checkpoints
//
// No answer is lost in our own rings, whatever the rate: the scheduler lets out
// only so many probes as the rings have room for answers, counted from the last
// time that the receivers had emptied them (run.go), and when the interface
// reports losses it slows down (throttle.go). Probes and answers that are lost
// elsewhere are asked again, in a later pass over those who have not answered.
package probe
