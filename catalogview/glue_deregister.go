package catalogview

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/glue"

	"github.com/lakefs-mount/lakefs-mount/objectstore"
	"github.com/lakefs-mount/lakefs-mount/table"
)

// Deregister is [Source]'s.
func (g *Glue) Deregister(ctx context.Context, t *table.Table, values []string) error {
	r := t.Ref()
	if len(values) != len(t.Keys) || len(values) == 0 {
		return fmt.Errorf("deregister a partition of %q: %d values for %d keys", about(r), len(values), len(t.Keys))
	}
	call := glueCall{op: "DeletePartition", about: about(r) + ": " + strings.Join(values, ", ")}
	_, err := askGlue(ctx, g, call, func(ctx context.Context, api *glue.Client) error {
		_, err := api.DeletePartition(ctx, &glue.DeletePartitionInput{
			CatalogId: g.catalog(r.CatalogID), DatabaseName: aws.String(r.Database), TableName: aws.String(r.Name), PartitionValues: values,
		})
		return err
	}, func([]byte) (struct{}, error) { return struct{}{}, nil })
	switch {
	case errors.Is(err, objectstore.ErrNotExist):
		return nil
	case errors.Is(err, objectstore.ErrUnavailable): // which may have taken effect
		if _, _, there := g.Partition(ctx, t, values); errors.Is(there, objectstore.ErrNotExist) {
			return nil
		}
	}
	return err
}
