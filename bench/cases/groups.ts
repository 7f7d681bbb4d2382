import { indexGroup } from '../index/group.js'
import { bandGroup } from './bands.js'
import { coldGroup } from './cold.js'
import { coldMixGroup } from './cold-mix.js'
import { hotGroup } from './hot.js'
import { hotSets } from './hot-sets.js'
import { importingGroup } from './importing.js'
import { missesGroup } from './misses.js'
import type { Group } from './run.js'
import { slowGroup } from './slow-readers.js'
import { startGroup } from './start.js'
import { streamGroup } from './stream.js'
import { tlsClientsGroup } from './tls-clients.js'
import { tlsSets } from './tls-sets.js'

/** Everything that `npm run bench` measures, in the order in which it does. */
export const groups: readonly Group[] = [
  ...tlsSets.map(hotGroup),
  tlsClientsGroup,
  ...hotSets.map(hotGroup),
  bandGroup,
  coldGroup,
  coldMixGroup,
  missesGroup,
  streamGroup,
  slowGroup,
  startGroup,
  importingGroup,
  indexGroup,
]
