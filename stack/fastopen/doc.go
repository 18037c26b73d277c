// Package fastopen keeps the state of a host for TCP Fast Open (RFC 7413): the keys with which a server computes cookies, the
// limit of its pending requests, and the cookies that servers have sent to this host. Package tcp has the protocol.
package fastopen
