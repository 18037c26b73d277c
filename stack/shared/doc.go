// Package shared has the state that all shards of a stack share: ports in use, path MTUs, IP identifications, and the rate limit of ICMP
// errors. Each is a pure table or machine of another package with a lock of its own. No lock is held while another one is taken.
package shared
