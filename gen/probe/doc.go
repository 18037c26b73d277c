// Package probe scans millions of addresses without losing answers, by ICMP echo, TCP SYN and UDP over IPv4 and
// IPv6, and hosts on the same link by ARP and Neighbor Discovery.
//
// It keeps no state per probe. The order of the questions is computed (space.go and package target). The expected
// content of an answer is a hash (tag.go). One bit per question records whether it has been answered (seen.go). A
// run therefore needs one bit of memory per question. To resume after an interruption, it needs a Checkpoint and
// the results so far.
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
// No answer is lost in the receivers' rings at any rate. The scheduler limits the number of probes to the room for
// answers in the rings, counted since the rings were last emptied (run.go). If the interface reports losses, the
// scheduler reduces the rate (throttle.go). Probes that were lost elsewhere, or whose answers were, are repeated in
// a later pass over the unanswered ones.
package probe
