package gluetest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/glue"
	"github.com/aws/aws-sdk-go-v2/service/glue/types"
	"github.com/aws/smithy-go"

	"github.com/lakefs-mount/lakefs-mount/internal/testing/gluetest"
)

func client(s *gluetest.Server) *glue.Client {
	return glue.New(glue.Options{
		BaseEndpoint: &s.URL, Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// The AWS SDK reads what the server answers, errors and times included.
func TestSDK(t *testing.T) {
	s := gluetest.New(t)
	s.AddDatabase("d")
	c := client(s)
	d := aws.String("d")
	input := &types.TableInput{Name: aws.String("t"), PartitionKeys: []types.Column{{Name: aws.String("n"), Type: aws.String("int")}}}
	if _, err := c.CreateTable(t.Context(), &glue.CreateTableInput{DatabaseName: d, TableInput: input}); err != nil {
		t.Fatal(err)
	}
	out, err := c.GetTable(t.Context(), &glue.GetTableInput{DatabaseName: d, Name: input.Name})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Table; got.CreateTime == nil || got.CreateTime.Year() < 2020 || aws.ToString(got.VersionId) != "0" || got.IsRegisteredWithLakeFormation {
		t.Errorf("got %+v, want a time and version 0", got)
	}
	_, err = c.UpdateTable(t.Context(), &glue.UpdateTableInput{DatabaseName: d, TableInput: input, VersionId: aws.String("9")})
	if stale := new(types.ConcurrentModificationException); !errors.As(err, &stale) {
		t.Errorf("got %v of a stale version", err)
	}
	_, err = c.GetTable(t.Context(), &glue.GetTableInput{DatabaseName: d, Name: aws.String("zz")})
	if none := new(types.EntityNotFoundException); !errors.As(err, &none) || none.ErrorMessage() != "Table zz not found." {
		t.Errorf("got %v of no table", err)
	}
	s.Fault(gluetest.Rule{Times: 1, Fault: gluetest.Throttle()})
	_, err = c.GetTable(t.Context(), &glue.GetTableInput{DatabaseName: d, Name: input.Name})
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ThrottlingException" {
		t.Errorf("got %v, want to be throttled", err)
	}
}

func TestSDKPages(t *testing.T) {
	s := gluetest.New(t)
	s.AddTable("d", `{"Name":"t","PartitionKeys":[{"Name":"n","Type":"int"}]}`)
	s.AddMany("d", "t", gluetest.Many{Count: 2501, Columns: 3, Values: func(i int) []string { return []string{fmt.Sprint(i)} }})
	s.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 1, Times: 1, Fault: gluetest.Gzip()})
	s.Fault(gluetest.Rule{Op: "GetPartitions", Skip: 2, Times: 1, Fault: gluetest.EmptyPage()})
	pages := glue.NewGetPartitionsPaginator(client(s), &glue.GetPartitionsInput{DatabaseName: aws.String("d"), TableName: aws.String("t")})
	seen := map[string]bool{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Partitions {
			seen[p.Values[0]] = true
			if p.CreationTime == nil || len(p.StorageDescriptor.Columns) != 3 {
				t.Fatalf("got %+v, want a time and 3 columns", p)
			}
		}
	}
	if len(seen) != 2501 || s.Requests()["GetPartitions"] != 4 {
		t.Errorf("got %d partitions in %d requests, want 2501 in 4", len(seen), s.Requests()["GetPartitions"])
	}
}
