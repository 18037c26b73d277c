// Package probe asks millions of addresses whether they are there, and loses no
// answer: ICMP echo, TCP SYN and UDP over IPv4 and IPv6.
//
// It remembers nothing about a probe. Whom to ask next is computed (space.go, and
// package target below it), what an answer must look like is hashed (tag.go), and
// a bit for each question tells who has answered (seen.go). So a run takes as much
// memory as it has questions, in bits, and what it needs to go on after an
// interruption is a Checkpoint and the results so far.
//
// Read in this order: config.go (what a run is told, and what it tells), run.go,
// schedule.go and lane.go (the goroutines), plan.go and throttle.go (whom, and how
// fast), form.go, answer.go and judge.go (frames out and in), output.go and state.go
// (results and checkpoints as text).
//
//	scheduler ──work──────────────> lanes ──frames──> network
//	    ^  ^                        │ │ ^                │
//	    │  └──free, caught up, seen─┘ │ └─────frames─── rings
//	    │                             └──found──> recorder ──> results, checkpoints
//	    └── throttle, plan
//
// No answer is lost in our own rings, whatever the rate: the scheduler lets out
// only so many probes as the rings have room for answers, counted from the last
// time that they had been emptied (run.go), and when the interface reports losses it
// slows down (throttle.go). Probes and answers that are lost elsewhere are asked
// again, in a later pass over those who have not answered.
package probe
