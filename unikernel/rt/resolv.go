package rt

import (
	"net/netip"
	"strings"
	"sync"

	"loam/fs"
	"loam/stack"
)

// resolvConf is the file /etc/resolv.conf, which follows what DHCP and routers say until
// the program writes to it.
type resolvConf struct {
	mu      sync.Mutex // guards what follows
	tree    *fs.Tree
	network *stack.Stack // nil: the program has not begun
	text    string       // what was written last
}

// begin writes the file, and has update do so from now on.
func (r *resolvConf) begin(tree *fs.Tree, network *stack.Stack) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tree, r.network = tree, network
	r.text = resolvText(network.DNS())
	return writeEtc(tree, map[string]string{"resolv.conf": r.text})
}

// update is called when the servers may be others.
func (r *resolvConf) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.network == nil {
		return
	}
	text := resolvText(r.network.DNS())
	if text == r.text || !r.untouched() {
		return
	}
	if writeEtc(r.tree, map[string]string{"resolv.conf": text}) == nil {
		r.text = text
	}
}

// untouched reports whether the file is as it was written.
func (r *resolvConf) untouched() bool {
	v := fs.NewView(r.tree)
	f, err := v.Open(v.Root, "/etc/resolv.conf", fs.ReadOnly, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(r.text)+1)
	n, err := f.ReadAt(b, 0)
	return err == nil && string(b[:n]) == r.text
}

// resolvText is /etc/resolv.conf. Without a server names cannot be looked up;
// the file then has none, and package net asks the loopback, where nobody
// answers.
func resolvText(servers []netip.Addr) string {
	var b strings.Builder
	for _, a := range servers {
		b.WriteString("nameserver " + a.String() + "\n")
	}
	return b.String()
}
