// Package gluetest is a Glue catalog for tests: an HTTP server in this process
// that answers the operations of AWS Glue that the product uses.
//
//	catalog := gluetest.New(t)
//	catalog.AddTable("sales", `{"Name": "orders", "PartitionKeys": [{"Name": "dt", "Type": "string"}]}`)
//	catalog.AddPartition("sales", "orders", `{"Values": ["2026-01-01"]}`)
//	catalog.Fault(gluetest.Rule{Op: "GetPartitions", Table: "orders", Times: 2, Fault: gluetest.Throttle()})
//	...            // a client of catalog.URL, any credentials
//	catalog.Requests()["GetPartitions"]
//	catalog.Calls("GetPartitions")[0].Input["ExcludeColumnSchema"]
//
// # What it keeps of AWS
//
// Listings of databases and tables come in pages of at most 100, of partitions in
// pages of at most 1000, in segments of which there may be 10, and without column
// schemas if asked. Batches have their limits (100 to create, 1000 to get, 25 to
// delete), and tell of items that fail inside a good answer. UpdateTable compares
// VersionId. Names, parameters, types and locations that come by HTTP have the
// limits of AWS. CatalogId is honoured: In makes the catalogs of other accounts.
// Absent fields are left out, times are numbers with an exponent.
//
// Entries keep every field as it came: those that no SDK knows, the digits of
// numbers, the order of keys. Links to tables and databases of elsewhere are entries
// like any other: nothing follows them.
//
// Partition expressions are =, <>, <, <=, >, >=, BETWEEN, [NOT] IN, AND, OR and
// parentheses; a quote in a string is doubled. What is not understood, a column
// that is no key (in this very case), and a literal that is not of the key's type is
// InvalidInputException. One stored value that is not of its key's type, as
// __HIVE_DEFAULT_PARTITION__ for an int, makes every expression on that key
// InvalidStateException.
//
// Where AWS differs: names are taken and looked up as they are, as the emulators
// do; AWS makes them lower-case. There are no permissions, and no signatures are
// looked at.
//
// # Faults
//
// A Rule has requests meet a Fault. Rules apply in the order they were added, each
// within the ones before it. Nothing is locked while a fault waits. Mind that Go's
// HTTP client itself repeats some requests whose connection was closed before an
// answer, and that the AWS SDK repeats most: the server counts them all.
//
// # Other servers
//
// Moto and Mini are emulators that other people wrote, as processes. The contract
// test makes the same calls to all three and has a table of where they differ.
//
// All methods may be called from several goroutines, but those that take a
// testing.TB fail that test, so they are for its own goroutine.
package gluetest
