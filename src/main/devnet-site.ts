import type { Config } from '../../config/read.js'
import { systemClock } from '../actor/clock.js'
import type { PlantingParts } from '../devnet/planting.js'
import { type Examples, type Planted, type Planting, plant } from '../devnet/seed.js'
import { parseId } from '../format/id.js'
import { LocalRegistry } from '../names/local-registry.js'
import { parseName } from '../names/name.js'
import { chainOptions } from '../threads/chain-options.js'
import { folders } from '../threads/folders.js'
import { hostOptions, namesFolder, siteName } from '../threads/host-names.js'

/** The examples of a new devnet. Loaded where there is a site to seed. */
export interface SeededSite {
  readonly examples: Examples
  /** Label to the address of its content. */
  readonly names: Readonly<Record<string, string>>
}

/** Puts the site onto the embedded chain, into the cache and, where there are root hosts, under a name. */
export async function seedSite(
  config: Config,
  given: Pick<Planting, 'gateway' | 'log' | 'end'> & { readonly node: string },
  port: number,
): Promise<SeededSite> {
  const folder = folders(config).devnet
  const { node, end } = given
  const examples = await plant({ ...given, folder, post: () => postedSite(config, { node, folder, end }) })
  end.throwIfAborted()
  return { examples, names: await nameSite(config, examples, port) }
}

/** Only the first start posts anything. */
async function postedSite(config: Config, given: Omit<PlantingParts, 'chain'>): Promise<Planted> {
  const { postSite } = await import('../devnet/planting.js')
  const { RemoteChain } = await import('../chain/remote-chain.js')
  const chain = new RemoteChain(chainOptions([given.node], config), systemClock)
  try {
    return await postSite({ ...given, chain })
  } finally {
    await chain.close()
  }
}

/** Gives the seeded site a name on this machine, where it has none that the operator gave. Resolves with its address. */
async function nameSite(config: Config, { site }: Examples, port: number): Promise<SeededSite['names']> {
  const hosts = hostOptions(config, port)
  const [name, id] = [parseName(siteName), parseId(site ?? '')]
  if (name === undefined || id === undefined || hosts === undefined || !config.names.order.includes('local'))
    return {}
  const registry = new LocalRegistry(namesFolder(folders(config).root))
  try {
    if (registry.get(name) === undefined) registry.set([[name, { id, ttlSeconds: 60 }]])
  } finally {
    await registry.close()
  }
  return { site: `http://${siteName}.${hosts.rootHosts[0]}:${port}/` }
}
