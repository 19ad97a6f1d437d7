// With a schema for each status, 201 has one too.

export default {
  posting: {
    input: "openapi.json",
    output: { client: "zod", target: "api.ts", override: { zod: { generateEachHttpStatus: true } } },
  },
};
