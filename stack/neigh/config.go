package neigh

import "time"

// Config holds the settings of a Cache. Zero values select the defaults.
type Config struct {
	Size       int           // maximum number of entries that are not static; default 1024
	Retransmit time.Duration // time between solicitations; default 1 s (RETRANS_TIMER of RFC 4861)
	Attempts   int           // number of solicitations without an answer before giving up; default 3 (MAX_MULTICAST_SOLICIT)
	Reachable  time.Duration // average time for which a confirmation is valid; default 30 s (REACHABLE_TIME)
	Delay      time.Duration // time to wait for a confirmation by upper layers before probing; default 5 s (DELAY_FIRST_PROBE_TIME)
	Negative   time.Duration // time for which a missing answer is remembered; default 3 s, at least Retransmit
	Forget     time.Duration // time for which an unused entry is kept; default 10 min
	Lock       time.Duration // time for which a MAC is not replaced by a contradicting one; default 1 s, like Linux's locktime
	Seed       uint64        // seed of the random delays that keep hosts from acting simultaneously
}

func (c Config) withDefaults() Config {
	setDefault(&c.Size, 1024)
	c.Size = max(c.Size, 1)
	setDefault(&c.Retransmit, time.Second)
	setDefault(&c.Attempts, 3)
	setDefault(&c.Reachable, 30*time.Second)
	setDefault(&c.Delay, 5*time.Second)
	setDefault(&c.Negative, 3*time.Second)
	setDefault(&c.Forget, 10*time.Minute)
	setDefault(&c.Lock, time.Second)
	// RFC 1122 section 2.3.2.1: at most one request per second for one address.
	c.Negative = max(c.Negative, c.Retransmit)
	return c
}

func setDefault[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}
