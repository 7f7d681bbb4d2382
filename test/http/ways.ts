import t from 'tap'
import { servedBy } from '../../native/server/server.js'

/** The ways in which sockets are served: each test of the server runs over all that this machine has. */
export const ways: readonly ('addon' | 'twin')[] = servedBy === 'addon' ? ['addon', 'twin'] : ['twin']
if (servedBy === 'twin') t.comment('the addon was not built: only its twin is tested')
