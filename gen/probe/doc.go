// Package probe scans millions of addresses without losing answers. It sends ICMP echo requests, TCP SYNs or UDP
// datagrams over IPv4 and IPv6. Hosts on the same link can also be found by ARP and Neighbor Discovery.
//
// The package stores nothing about a probe that it has sent. A question is an address with a port. The order of the
// questions is computed (space.go and package target). The content that an answer must have is a hash (tag.go). One bit
// per question records whether the question has been answered (seen.go), so a run needs one bit of memory per question.
// To resume a run after an interruption, only a Checkpoint and the earlier results are needed.
//
// Reading order: config.go (configuration and results), run.go, schedule.go and lane.go (the goroutines), plan.go
// and throttle.go (which question next, and how fast), form.go, neighbour.go, answer.go and judge.go (outgoing and
// incoming frames), filter.go, output.go and state.go (results and checkpoints as text).
//
//	scheduler ──work──────────────> lanes ──frames──> network
//	    ^  ^                        │ │ ^                │
//	    │  └──free, caught up, seen─┘ │ └─────frames─── rings
//	    │                             └──found──> recorder ──> results, checkpoints
//	    └── throttle, plan
//
// No answer is lost in the receivers' rings, at any rate: the scheduler counts the probes since the rings were last
// emptied, and limits them to the number of answers for which the rings have room (run.go). If the interface reports
// losses, the scheduler reduces the rate (throttle.go). If a probe or its answer was lost elsewhere, the probe is
// repeated in a later pass over the unanswered questions.
package probe
