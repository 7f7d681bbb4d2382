/** One thread of the pool that hashes and verifies; Piscina calls the exported functions by name. */
export {
  arePayloads,
  checkPacked,
  dataRoot,
  digest,
  isPayload,
  items,
  packText,
  postedFault,
} from '../src/threads/source/proof-tasks.js'
