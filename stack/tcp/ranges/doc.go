// Package ranges has the list of the data that has arrived after a gap: a short sorted list of ranges of sequence numbers. The bytes
// themselves are kept elsewhere.
package ranges
