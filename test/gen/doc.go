// Package gen tests the packet engine from outside, by its command: a generator and a sink in two
// network namespaces, and what they leave behind when they are killed. It has no code but tests.
package gen
