/** Two wallets that share credits with each other. */
export const sharers: readonly string[] = [1, 2].map((at) => Buffer.alloc(32, at).toString('base64url'))
