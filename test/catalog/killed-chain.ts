/** The chain that is imported while the importer is killed again and again. */
export const killedChain = { items: 6000, itemsPerBundle: 60, bundlesPerBlock: 2, seed: 11 } as const
