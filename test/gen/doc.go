// Package gen tests the packet engine from outside, by its command: a generator
// and a sink in two network namespaces, and what is left of them when they are
// killed. There is nothing in it to call.
package gen
