/** One thread of the pool that signs with the wallet of the upload service; Piscina calls it by name. */
export { rsa } from '../src/threads/upload/sign-tasks.js'
