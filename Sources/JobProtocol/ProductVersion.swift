/// The common version of the daemon and the client.
package enum ProductVersion {
    package static let current = "0.1.0"
}
