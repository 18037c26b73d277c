//go:build linux

package bench

import (
	"fmt"
	"io"
	"text/tabwriter"

	"loam/gen/frame"
	"loam/gen/show"
)

// Table writes the rows as a table. The column ratio compares the frames per processor second of each row with the row
// that is named base and has one queue. size is the frame size in bytes, FCS included.
func Table(out io.Writer, rows []Row, size int, base string) error {
	var one float64
	for i := range rows {
		if rows[i].Name == base && rows[i].Queues == 1 {
			one = rows[i].MedianPerCPU()
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "method\tqueues\tmedian\tleast\tmost\tlayer 2\tlayer 1\tper processor\tto %s\tnot counted\t\n", base)
	for i := range rows {
		r := &rows[i]
		if r.Error != "" {
			fmt.Fprintf(w, "%s\t%d\t-\t-\t-\t-\t-\t-\t-\t-\t\n", r.Name, r.Queues)
			continue
		}
		m := r.Median()
		least, most := r.Spread()
		ratio, lost := "-", "-"
		if one > 0 {
			ratio = fmt.Sprintf("%.2f", r.MedianPerCPU()/one)
		}
		if r.Lost >= 0 {
			lost = fmt.Sprintf("%.2f %%", 100*r.Lost)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.Queues, show.Rate(m), show.Rate(least), show.Rate(most),
			show.Bits(8*float64(size)*m), show.Bits(8*float64(size+frame.WireOverhead)*m), show.Rate(r.MedianPerCPU()), ratio, lost)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range rows {
		if text := rows[i].Error + rows[i].Note; text != "" {
			fmt.Fprintf(out, "%s, %d queue(s): %s\n", rows[i].Name, rows[i].Queues, text)
		}
	}
	return nil
}
