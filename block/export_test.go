package block

// Burst acquires n calls at the same time and releases them.
func Burst(o *IO, n int) {
	var all []*call
	for range n {
		all = append(all, o.acquire())
	}
	for _, c := range all {
		o.release(c)
	}
}
