/** What `#addon-signer` is in browsers and in the package of the client alone: there the library signs. */
export function addonSigner(_secret: Uint8Array): ((digest: Uint8Array) => Uint8Array) | undefined {
  return undefined
}
