// Vectors of Noise IK and IKpsk2 by an independent implementation: cacophony, in Haskell (GitHub
// haskell-cryptography/cacophony, commit 8ee9d41e34a1, vectors/cacophony.txt; public domain). The
// file has all patterns; here are those that we speak. All in hexadecimal digits.
#pragma once

#include "secure/crypto.hpp"

namespace via::secure::noise_vectors {

/// Odd ones are the asker's. The first two are the handshake's, the others under the keys.
struct Message {
    const char* payload;
    const char* ciphertext;
};
struct Vector {
    const char* name;
    CipherKind cipher;
    const char* shared;  ///< pre-shared key; nullptr: none
    const char* transcript;
    Message messages[6];
};

// The same in all of them.
constexpr const char* prologue = "4a6f686e2047616c74";
constexpr const char* asker_static =
    "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1";
constexpr const char* asker_ephemeral =
    "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
constexpr const char* answerer_public =
    "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62";
constexpr const char* answerer_static =
    "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893";
constexpr const char* answerer_ephemeral =
    "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";

constexpr Vector all[] = {
    {"Noise_IK_25519_ChaChaPoly_SHA256",
     CipherKind::chacha20_poly1305,
     nullptr,
     "0b0f68fb0c27e03ce9b97565995ed4838cc0581b762ef72b062f6a546419fad7",
     {
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944718da798efbcd915"
          "28520204f904b9bd6c7413dccdc214d951e15253e39987f18146e8cd0873654207148333479d4d16"
          "c289f0294b29960a72f48e0b7bba2e89083169825e59642148d492020664ccf7"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088435361e70b2ed446e6"
          "c9ec387d1d6b3b840f194e373979d241b203c4acafccf5"},
         {"462e20412e20486179656b", "050e9f3c8fac16b68dbce8f8c4bfbf6617c897f9ada4aa29aa19c8"},
         {"4361726c204d656e676572", "344233a6cabb7141d80f3da2fedc311d9646bbb0f505afe403a667"},
         {"4a65616e2d426170746973746520536179",
          "62cdeeb172ad7ade7aa7d9e069da5790f12331bfa00177787a1d0810c67dc3b2b4"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "029bead1b40992327044d409d9a1f3ad8f36c3c452775d557e18bbeb2e8dfcead32d514024"},
     }},
    {"Noise_IK_25519_AESGCM_SHA256",
     CipherKind::aes_256_gcm,
     nullptr,
     "669c8640d9e42a3cda2f232f78597ceefb01daa6e3df81181ccce6fc6b5026bf",
     {
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79444e417bc55c7a8166"
          "c993356c1be41ef67818a292426f301556c7f26b21d25ddb097153891a9a956cff47b83e63ad8d70"
          "1c1342c209cff1ca5ecd43402762ac249e3bd3a4c0a145fe07cb5dae28ea13a3"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843af2ccf9972e22afc"
          "67aeafcd25162f7f98c363b7762e3e4cb7d272e39f27a5"},
         {"462e20412e20486179656b", "66acfc92e3197de166809e6d4d5d003dcc819a84bc3522ca53c9d9"},
         {"4361726c204d656e676572", "71f89aa6533a6de70b0826864dd75f60806ee40170c16290189eb3"},
         {"4a65616e2d426170746973746520536179",
          "4795a3423550c8bf00386bd496a3e2c76c10669d2a75ab8f79b5094c5412a25705"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "aa0bb39097555c918e40be82abc2b909eb79d9eb87adb07e268fc37323a6cf904fd01fb391"},
     }},
    {"Noise_IKpsk2_25519_ChaChaPoly_SHA256",
     CipherKind::chacha20_poly1305,
     "54686973206973206d7920417573747269616e20706572737065637469766521",
     "8310f86394dc0dabb40beb8210031556db4403ab1202db7034c526232147a700",
     {
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79442ec9b09893d0f510"
          "791784c10cbc959f25b1766e0def6e301d14fbca1c7790ac829b8b3674f5f649a5f0e98479662cbf"
          "bf2b2c47cd4b09fcd266cd29d7cb675f1808849707847840f6d178ec4d3733aa"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088439a1b3cebf680b2c7"
          "4217fcb5eba4ff58a9468cd90c4aca6194f57479b379a7"},
         {"462e20412e20486179656b", "a8fde7a0accec190cd306c5950d4fd8e04a205ec288aa747d8b347"},
         {"4361726c204d656e676572", "59caddd9984a3bbe24c4fb31a2bd455b7eba3fa0980674b1a3a5f9"},
         {"4a65616e2d426170746973746520536179",
          "3b9bfebd210c22ba0cff9de79b4007d7a552fffbf92616881faa8a883e25b80258"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "f37512df1043d564d7c46ac85c53d3b6a9a05724bc297e7142808f217561651217fe85b782"},
     }},
    {"Noise_IKpsk2_25519_AESGCM_SHA256",
     CipherKind::aes_256_gcm,
     "54686973206973206d7920417573747269616e20706572737065637469766521",
     "48c3f1eb397c797af6b139032c6074cb41282ff033ee25d5aee4a4badd3a2c3f",
     {
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79445a1baf339186d786"
          "7062b0dd31f5de322d370165d217939b2b7ed9e2bae7840458ea65c2ce1554e0e8077fe7334c4bd5"
          "14c658fd04d97b86d216f58f59714a7e24144155045c8f36bed85a2cb0fd9af7"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432fe8d675e949799d"
          "2a968211a66cc7ba2b0f4cad8eda3c2bd37eae737bbf88"},
         {"462e20412e20486179656b", "38cbf3835c78b7802df0dd0d9640ff8575debd0cb61cfb52590da1"},
         {"4361726c204d656e676572", "ffc365ff6955fc66c5d809b31ac995f812c5770bd29f0df12f0ffd"},
         {"4a65616e2d426170746973746520536179",
          "a7f2828174c4ead2491ffeb77c41c890fd1229ee36f23ccb9066a795daff1cad6b"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "3b86963d5c0e6e3b4153d77153836606393eefc4e5e6dae97796552d1265839ee3825cb80c"},
     }},
};

}  // namespace via::secure::noise_vectors
