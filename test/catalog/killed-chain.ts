/** The chain that is imported while the importer is killed again and again. */
export const killedChain = { items: 3000, itemsPerBundle: 60, bundlesPerBlock: 2, seed: 11 } as const
